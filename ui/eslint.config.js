/** The rules that the page's code follows; `npm run lint` checks them. How code is laid out is Prettier's part. */
import svelte from "eslint-plugin-svelte";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", "test-results/", "src/server/schema.ts"] },
  ...tseslint.configs.recommended,
  ...svelte.configs.recommended,
  ...svelte.configs.prettier,
  {
    files: ["**/*.ts", "**/*.svelte"],
    languageOptions: {
      parserOptions: {
        project: ["./tsconfig.json", "./tsconfig.node.json"],
        extraFileExtensions: [".svelte"],
        parser: tseslint.parser,
      },
    },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "no-constant-condition": ["error", { checkLoops: false }],
      "no-self-compare": "error",
      "no-unreachable": "error",
      "no-useless-assignment": "error",
      // A promise that nobody waits for hides its error; `void` says that this is meant.
      "@typescript-eslint/await-thenable": "error",
      "@typescript-eslint/no-floating-promises": "error",
      "@typescript-eslint/no-misused-promises": [
        "error",
        { checksVoidReturn: { inheritedMethods: false, properties: false } },
      ],
      "@typescript-eslint/consistent-type-imports": "error",
      // The compiler says this already.
      "@typescript-eslint/no-unused-vars": "off",
      // Sets and maps of the page are replaced as a whole where they are state.
      "svelte/prefer-svelte-reactivity": "off",
      // `{" "}` keeps a space that the end of a line would swallow.
      "svelte/no-useless-mustaches": "off",
    },
  },
);
