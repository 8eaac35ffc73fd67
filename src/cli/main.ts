#!/usr/bin/env node
/** The entry point. Prints the version before it loads other modules. */
import { readFileSync } from "node:fs"

const { version }: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8")
)
const args = process.argv.slice(2)

if (args[0] === "--version" || args[0] === "-v") {
  process.stdout.write(`${version}\n`)
} else {
  void import("./Program.ts").then(({ main }) => main(args, version))
}
