/**
 * A project that has the packed package installed, and nothing of this repository but packages beside it.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Published from "../faults/published.ts"

export const compilers = [
  { name: "TypeScript 5.9", tsc: join(Published.repo, "node_modules/typescript-5.9/bin/tsc") },
  { name: "TypeScript 7", tsc: join(Published.repo, "node_modules/typescript/bin/tsc") }
]

/** The options of a compiler that an application sets. */
export const strict = { strict: true, module: "nodenext", target: "esnext", skipLibCheck: true, noEmit: true }

/** Makes a folder for a project. */
export const folder = (name: string): string => mkdtempSync(join(tmpdir(), `effect-agent-${name}-`))

/** Packs the package and installs it in the folder, with copies of these packages of the repository. */
export const install = async (home: string, packages: ReadonlyArray<string>): Promise<void> => {
  const { tarball } = await Published.publish()
  writeFileSync(join(home, "package.json"), `{ "type": "module", "private": true }`)
  for (const name of packages) {
    cpSync(join(Published.repo, "node_modules", name), join(home, "node_modules", name), { recursive: true })
  }
  mkdirSync(join(home, "node_modules/effect-agent"))
  const unpack = ["-xzf", tarball, "--strip-components=1", "-C", join(home, "node_modules/effect-agent")]
  const { code, stderr } = await Published.run("tar", unpack)
  if (code !== 0) throw new Error(stderr)
}

export const remove = (home: string): void => rmSync(home, { recursive: true, force: true })
