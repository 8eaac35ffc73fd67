// What has to hold before a version is published: the packed package, in an empty folder, with nothing but what npm installs
// for it, can be imported and run. From the registry, so that a part that was never published is missed here and not by users.
//
//   node scripts/release-check.mjs [--tarball FILE] [--with PACKAGE]
//
// --with: in place of the registry, of which nothing is asked then. The tests do so.
import { execFileSync } from "node:child_process"
import {
  existsSync,
  globSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, dirname, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { publicModules, subpathOf } from "./publicModules.ts"

/** Of the core and its providers, with what they need. */
const maxPackages = 10
const scripts = ["preinstall", "install", "postinstall"]

const { values } = parseArgs({
  options: { tarball: { type: "string" }, with: { type: "string", multiple: true } }
})
const folder = mkdtempSync(join(tmpdir(), "effect-agent-release-"))
const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` }
const run = (command, args) =>
  execFileSync(command, args, { cwd: folder, env, encoding: "utf8", stdio: "pipe" })

const pack = () => {
  const [{ filename }] = JSON.parse(
    execFileSync("npm", ["pack", "--json", "--pack-destination", folder], {
      cwd: join(import.meta.dirname, ".."),
      encoding: "utf8"
    })
  )
  return join(folder, filename)
}

const install = (tarball) => {
  const offline = values.with === undefined ? [] : ["--offline"]
  const packages = [tarball, ...(values.with ?? [])].map((file) => resolve(file))
  writeFileSync(join(folder, "package.json"), `{ "name": "clean", "private": true, "type": "module" }\n`)
  run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...offline, ...packages])
  run("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", ...offline])
}

/** Everything that was installed, wherever it was put. */
const installed = (at = join(folder, "node_modules")) =>
  namesIn(at).flatMap((name) => {
    const own = join(at, name)
    const nested = lstatSync(own).isSymbolicLink() ? [] : installed(join(own, "node_modules"))
    return [{ folder: own, ...JSON.parse(readFileSync(join(own, "package.json"), "utf8")) }, ...nested]
  })

const namesIn = (at) =>
  (existsSync(at) ? readdirSync(at) : [])
    .filter((name) => !name.startsWith("."))
    .flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(at, name)).map((own) => join(name, own)) : [name]
    )

const checkClosure = () => {
  const packages = installed()
  const names = packages.map(({ name, version }) => `${name}@${version}`)
  if (packages.length > maxPackages) throw new Error(`${packages.length} packages: ${names.join(", ")}`)
  if (new Set(packages.map(({ name }) => name)).size < packages.length)
    throw new Error(`Twice: ${names.join(", ")}`)
  for (const { folder: at, gypfile, name, scripts: own = {} } of packages) {
    const found = scripts.filter((script) => script in own)
    if (found.length > 0 || gypfile === true)
      throw new Error(`${name} does something when it is installed: ${found}`)
    const native = globSync(["binding.gyp", "**/*.node"], { cwd: at })
    if (native.length > 0) throw new Error(`${name} has native parts: ${native}`)
  }
  return names
}

/** The entries that need an optional peer. */
const peers = {
  node: "@effect/platform-node",
  prices: "@pydantic/genai-prices"
}
const peersOfOne = {
  "./acp": "@agentclientprotocol/sdk",
  "./acp/AcpAgent": "@agentclientprotocol/sdk",
  "./node/NodeSqlite": undefined
}
const peerOf = (entry) => (entry in peersOfOne ? peersOfOne[entry] : peers[entry.split("/")[1]])

/** Every entry can be imported as it is. An entry that needs an optional peer fails, and names the peer. */
const checkImports = () => {
  const { exports } = JSON.parse(readFileSync(join(folder, "node_modules/effect-agent/package.json"), "utf8"))
  const entries = publicModules.map(subpathOf).filter((entry) => entry in exports || "./*" in exports)
  const lines = entries.map((entry) => {
    const peer = peerOf(entry)
    const line = `await import(${JSON.stringify(join("effect-agent", entry))})`
    return peer === undefined
      ? line
      : `${line}.then(() => { throw new Error("no failure") }).catch(fails(${JSON.stringify(peer)}))`
  })
  const fails = `const fails = (peer) => (error) => { if (!error.message.includes(\`'\${peer}'\`)) throw error }`
  run(process.execPath, ["--input-type=module", "--eval", [fails, ...lines].join("\n")])
  return entries.filter((entry) => peerOf(entry) === undefined).length
}

const checkProgram = () => {
  const bin = join(folder, "node_modules/.bin/effect-agent")
  const { version } = JSON.parse(readFileSync(join(folder, "node_modules/effect-agent/package.json"), "utf8"))
  const said = run(bin, ["--version"]).trim()
  if (said !== version) throw new Error(`The program says it is ${said}, not ${version}`)
  run(bin, ["--model", "local/rules", "list"])
}

try {
  install(values.tarball ?? pack())
  const names = checkClosure()
  const entries = checkImports()
  checkProgram()
  console.log(`${names.join(", ")}: ${names.length} packages, ${entries} entries, and the program runs`)
} catch (error) {
  console.error(`Not fit to be published: ${error.message}\n${error.stderr ?? ""}`)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}
