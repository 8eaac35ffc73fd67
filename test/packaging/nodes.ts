/**
 * The versions of Node that tests of the package run on.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"

const repo = join(import.meta.dirname, "../..")

/** Where `.ci/run` installs the oldest Node that `package.json` allows. */
export const oldest = join(repo, "node_modules/.oldest-node/node_modules/node/bin/node")

const { engines } = JSON.parse(readFileSync(join(repo, "package.json"), "utf8"))

/** The oldest version of Node that `package.json` allows, as in "22.19". */
export const oldestVersion: string = engines.node.replace(">=", "")

const versionOf = (path: string) => execFileSync(path, ["--version"], { encoding: "utf8" }).trim()

/** The Node that runs the tests, and the oldest one if it is installed. */
export const nodes = [process.execPath, oldest]
  .filter((path) => existsSync(path))
  .map((path) => ({ name: `Node ${versionOf(path)}`, path }))
