/** Entry point of the page. */
import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { app } from "./state/app.svelte";
import { load } from "./pages/own";

app.start();
// The page's chunk is loaded while the sessions are requested.
void load(app.route.page).catch(() => undefined);
const target = document.getElementById("app");
if (target) {
  target.replaceChildren();
  mount(App, { target });
}
