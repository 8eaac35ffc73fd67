/**
 * What esbuild makes of `src`: the library in few files, and the program with everything it needs inside.
 *
 * A module costs about a millisecond of an import, whatever is in it, so they are joined; a piece that is only sometimes
 * needed stays a file of its own.
 */
import type { BuildOptions, Plugin } from "esbuild"
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { publicModules } from "./publicModules.ts"

const root = join(import.meta.dirname, "..")

const esm = {
  absWorkingDir: root,
  bundle: true,
  splitting: true,
  format: "esm",
  outbase: "src",
  logLevel: "warning"
} as const satisfies BuildOptions

/**
 * Empties the lines that import a file for its effects, of which the library has none. esbuild, where it splits an application, would load at
 * once the tables of models that one import in such a file and `import()` in another share.
 */
const effectless: Plugin = {
  name: "effectless",
  setup: ({ initialOptions: { outdir = "", write }, onEnd }) =>
    onEnd(() => {
      for (const file of write === false ? [] : globSync(join(resolve(root, outdir), "**/*.js"))) {
        const code = readFileSync(file, "utf8")
        writeFileSync(file, code.replaceAll(/^import "\.[^"]*";$/gm, ""))
      }
    })
}

/** The library. A subpath is a file of its own, so that an application's bundle leaves the others out. */
export const library = (outdir: string): BuildOptions => ({
  ...esm,
  entryPoints: publicModules.map((module) => `src/${module}.ts`),
  outdir,
  chunkNames: "internal/[hash]",
  packages: "external",
  platform: "neutral",
  target: "es2023",
  sourcemap: true,
  plugins: [effectless],
  // The sources are published beside it.
  sourcesContent: false
})

/**
 * Of undici the parts that the program uses. Its index loads fetch, web sockets, caches and mocks too, which takes longer than the rest of
 * the program.
 */
const undici: Plugin = {
  name: "undici",
  setup: ({ onLoad }) =>
    onLoad({ filter: /platform-node.dist.Undici\.js$/ }, () => ({
      contents: `
        import api from "undici/lib/api/index.js"
        import Dispatcher from "undici/lib/dispatcher/dispatcher.js"
        // The index of undici does the same.
        Object.assign(Dispatcher.prototype, api)
        export { default as Agent } from "undici/lib/dispatcher/agent.js"
        export { default as EnvHttpProxyAgent } from "undici/lib/dispatcher/env-http-proxy-agent.js"
        export { default as buildConnector } from "undici/lib/core/connect.js"`
    }))
}

/** Of the terminal library the parts that the session uses. Its index loads a parser of Markdown and other screens too. */
const terminal: Plugin = {
  name: "terminal",
  setup: ({ onLoad }) =>
    onLoad({ filter: /pi-tui.dist.index\.js$/ }, () => ({
      contents: `
        export { Editor } from "./components/editor.js"
        export { parseKey } from "./keys.js"
        export { StdinBuffer } from "./stdin-buffer.js"
        export { ProcessTerminal } from "./terminal.js"
        export { CURSOR_MARKER } from "./tui.js"
        export { TuiMainScreen } from "./tui-main-screen.js"
        export { stripTerminalSequences, truncateToWidth, visibleWidth, wrapTextWithAnsi } from "./utils.js"`
    }))
}

/**
 * Writes a `package.json` beside the program. For each file Node looks for the next one, and reads it: that of the package, with all its
 * subpaths, takes longer than the file.
 */
const scope: Plugin = {
  name: "scope",
  setup: ({ initialOptions: { outdir = "", write }, onEnd }) =>
    onEnd(() => {
      if (write === false) return
      const folder = resolve(root, outdir, "cli")
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n')
    })
}

/** The program: `cli/main.js`, which says the version alone, and what it loads when there is more to do. */
export const program = (outdir: string): BuildOptions => ({
  ...esm,
  entryPoints: ["src/cli/main.ts"],
  outdir,
  chunkNames: "cli/[name]-[hash]",
  platform: "node",
  target: "node22",
  // The program uses it where it is installed.
  external: ["@aws-sdk/credential-provider-node"],
  minify: true,
  plugins: [undici, terminal, scope],
  // What is bundled and still asks for CommonJS, undici first of all, gets it.
  banner: {
    js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);'
  }
})

/** Where `program` puts its entry. */
export const entryOf = (outdir: string): string => join(outdir, "cli/main.js")
