/**
 * The package as it would be published, made in a folder of its own, with things beside it that must not come along.
 */
import { execFile } from "node:child_process"
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"

/** Where all this comes from. */
export const repo = join(import.meta.dirname, "../..")

/** The folders of all threads of this process, which `cleanUp.ts` removes at the end of the tests. */
export const homes = join(tmpdir(), `effect-agent-published-${process.pid}`)
mkdirSync(homes, { recursive: true })

/** A folder for everything here. */
export const home = mkdtempSync(join(homes, "thread-"))

/** What somebody may have lying about. */
const decoys = [
  ".env",
  "src/.env",
  "src/key.pem",
  "src/tools/notes.md",
  ".npmrc",
  "test/a.test.ts",
  "src.txt",
  "out.tgz"
]

const sources = ["src", "scripts", "docs", "examples", "*.json", "*.md", "LICENSE"]

const env = {
  ...process.env,
  // Ours, not the one of the machine.
  PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}`,
  // What npm says is looked at, however silent the one is that started this.
  npm_config_loglevel: "error",
  npm_config_silent: "false"
}

export interface Said {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a program to its end. */
export const run = (
  command: string,
  args: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {}
): Promise<Said> =>
  new Promise((done) => {
    const all = { cwd: options.cwd ?? home, env: { ...env, ...options.env }, maxBuffer: 2 ** 26 }
    execFile(command, args, all, (error, stdout, stderr) =>
      done({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr })
    )
  })

const must = async (...args: Parameters<typeof run>): Promise<Said> => {
  const said = await run(...args)
  if (said.code !== 0) throw new Error(said.stderr)
  return said
}

/** Packs what is in the folder. Gives the tarball. */
export const pack = async (folder: string, into: string): Promise<string> => {
  mkdirSync(into, { recursive: true })
  const { stdout } = await must("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", into], {
    cwd: folder
  })
  const [{ filename }] = JSON.parse(stdout)
  return join(into, filename)
}

/**
 * Whether the repository was built after the last change of what a build is made of. Folders count too: a file that went away
 * changes its folder.
 */
const isBuilt = (): boolean => {
  const changedAt = (file: string) => statSync(join(repo, file), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const madeOf = globSync(["package-lock.json", "package.json", "tsconfig*.json", "{scripts,src}/**"], {
    cwd: repo
  })
  const built = ["dist/index.d.ts", "dist/index.js", "dist/cli/main.js"].map(changedAt)
  return Math.min(...built) > Math.max(...madeOf.map(changedAt))
}

let published: ReturnType<typeof make> | undefined

/** Builds the package unless that was done, and packs it, once for all tests of a process. Gives the tarball, and the folder it was unpacked to again. */
export const publish = () => (published ??= make())

const make = async () => {
  const staging = join(home, "staging")
  for (const file of sources.flatMap((pattern) => globSync(pattern, { cwd: repo }))) {
    cpSync(join(repo, file), join(staging, file), { recursive: true })
  }
  symlinkSync(join(repo, "node_modules"), join(staging, "node_modules"))
  for (const file of decoys) {
    mkdirSync(dirname(join(staging, file)), { recursive: true })
    writeFileSync(join(staging, file), "decoy\n")
  }
  if (isBuilt()) cpSync(join(repo, "dist"), join(staging, "dist"), { recursive: true })
  else await must(process.execPath, ["scripts/build.mjs"], { cwd: staging })
  const tarball = await pack(staging, join(home, "packed"))
  await must("tar", ["-xzf", tarball])
  return { tarball, unpacked: join(home, "package") }
}

/** The packages that an application installs with it, as they are here: npm need not know them from a registry. */
const needed = () => {
  const { dependencies } = jsonIn(join(repo, "package.json"))
  return ["effect", ...Object.keys(dependencies)].map((name) => join(repo, "node_modules", name))
}

/** Installs it into an empty folder, with the packages that are here, and nothing from any network. */
export const install = async (tarball: string): Promise<string> => {
  const folder = join(home, "clean")
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), `{ "type": "module", "private": true }`)
  const flags = ["--ignore-scripts", "--offline", "--no-audit", "--no-fund"]
  await must("npm", ["install", ...flags, tarball, ...needed()], { cwd: folder })
  return folder
}

/** The check before a release, on this tarball. */
export const releaseCheck = (tarball: string): Promise<Said> =>
  run(process.execPath, [
    join(repo, "scripts/release-check.mjs"),
    "--tarball",
    tarball,
    ...needed().flatMap((path) => ["--with", path])
  ])

/** A tarball of next to nothing under our name, with this in its manifest and in its only module. */
export const impostor = (name: string, manifest: object, module = ""): Promise<string> => {
  const folder = join(home, name)
  const own = { name: "effect-agent", version: "0.0.0", type: "module", exports: { ".": "./index.js" } }
  mkdirSync(folder)
  writeFileSync(join(folder, "package.json"), JSON.stringify({ ...own, ...manifest }))
  writeFileSync(join(folder, "index.js"), module)
  return pack(folder, join(home, `packed-${name}`))
}

export const jsonIn = (file: string) => JSON.parse(readFileSync(file, "utf8"))
