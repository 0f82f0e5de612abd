/** Where the page begins. */
import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { app } from "./lib/app.svelte";

app.start();
const target = document.getElementById("app");
if (target) mount(App, { target });
