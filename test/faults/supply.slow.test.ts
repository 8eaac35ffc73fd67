import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll } from "vitest"
import * as Program from "../cli/program.ts"
import { publicModules, subpathOf } from "../../scripts/publicModules.ts"
import * as Published from "./published.ts"

const { repo } = Published
const manifest = Published.jsonIn(join(repo, "package.json"))
const lock = Published.jsonIn(join(repo, "package-lock.json"))

/** Packages of the lock file, by where they are. */
const locked: ReadonlyArray<readonly [string, Record<string, unknown>]> = Object.entries<
  Record<string, unknown>
>(lock.packages).filter(([at]) => at !== "")

describe("what is published", { timeout: 120_000 }, () => {
  let made = { tarball: "", unpacked: "" }
  beforeAll(async () => {
    made = await Published.publish()
  }, 240_000)

  const files = () =>
    globSync("**/*", { cwd: made.unpacked, withFileTypes: true }).flatMap((entry) =>
      entry.isFile() ? [join(entry.parentPath, entry.name).slice(made.unpacked.length + 1)] : []
    )
  const read = (file: string) => readFileSync(join(made.unpacked, file), "utf8")

  it("F157: is the sources, what was built of them, and the pages beside them", () => {
    const sources = globSync("**/*.ts", { cwd: join(repo, "src") })
    const types = sources
      .filter((file) => !file.startsWith("cli/"))
      .map((file) => file.replace(/\.ts$/, ""))
      .flatMap((name) => [".d.ts", ".d.ts.map"].map((end) => `dist/${name}${end}`))
    const pages = [
      ...globSync(["docs/*.md", "docs/pictures/*.svg", "examples/*.ts"], { cwd: repo }),
      "AGENTS.md",
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "SECURITY.md",
      "config.schema.json",
      "dist/cli/package.json",
      "package.json"
    ]
    const expected = [...sources.map((file) => `src/${file}`), ...types, ...pages]
    const isCode = (file: string) => /^dist\/.*\.js(?:\.map)?$/.test(file)
    assert.deepStrictEqual(
      files()
        .filter((file) => !isCode(file))
        .toSorted(),
      expected.toSorted()
    )
    const code = files().filter(isCode)
    const entries = publicModules.map((module) => `./dist/${module}.js`)
    for (const entry of [...entries, manifest.bin["effect-agent"]])
      assert.include(code, entry.replace("./", ""))
    // Entries, the pieces that they share, and the program. A piece of the program that loads late is one: the session has five.
    assert.isAtMost(code.filter((file) => file.endsWith(".js")).length, 524)
  })

  it("F157: holds no secret, no path of the machine it was built on, and no source within a map", () => {
    // Behind the first line of a private key stands the key: a library that reads keys has the line alone.
    const key =
      /-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\\n|\s)*[A-Za-z0-9+/]{20}|\b(?:ghp|github_pat|npm|xox[abp])_[A-Za-z0-9]{20}|\bAKIA[A-Z0-9]{16}\b/
    for (const file of files()) {
      const text = read(file)
      assert.notMatch(text, key, file)
      assert.isFalse(text.includes(repo) || text.includes(Published.home), file)
      if (!file.endsWith(".map")) continue
      const { sources, sourcesContent } = JSON.parse(text)
      assert.isUndefined(sourcesContent, file)
      for (const source of sources) assert.match(source, /^(?:\.\.\/)+src\//, file)
    }
  })

  it("F157: says where it was built, by whoever builds it, and is locked", () => {
    assert.deepStrictEqual(manifest.publishConfig, { access: "public", provenance: true })
    assert.strictEqual(lock.lockfileVersion, 3)
    assert.isAbove(locked.length, 100)
    const loose = locked.filter(
      ([, { integrity, link }]) => link === true || !String(integrity).startsWith("sha512-")
    )
    assert.deepStrictEqual(
      loose.map(([at]) => at),
      []
    )
  })

  it("F155: depends on effect and on two small libraries, and is developed with exact versions, as they are locked (row 269)", () => {
    assert.deepStrictEqual(manifest.dependencies, {
      aws4fetch: "1.0.20",
      re2js: "2.10.0"
    })
    assert.isUndefined(manifest.optionalDependencies)
    const needed = Object.keys(manifest.peerDependencies).filter(
      (name) => manifest.peerDependenciesMeta[name]?.optional !== true
    )
    assert.deepStrictEqual(needed, ["effect"])
    for (const [name, version] of Object.entries(manifest.devDependencies)) {
      const exact = String(version).replace(/^npm:typescript@/, "")
      assert.match(exact, /^\d+\.\d+\.\d+$/, name)
      assert.strictEqual(lock.packages[`node_modules/${name}`].version, exact, name)
    }
  })

  it("F154: does nothing when it is installed, nor does effect", () => {
    for (const { scripts = {} } of [
      manifest,
      Published.jsonIn(join(repo, "node_modules/effect/package.json"))
    ]) {
      assert.deepStrictEqual(
        ["preinstall", "install", "postinstall"].filter((name) => name in scripts),
        []
      )
    }
    // In development too nothing runs at install that was not allowed by name.
    const running = locked.filter(
      ([, { hasInstallScript, optional }]) => hasInstallScript === true && optional !== true
    )
    const allowed = new Set(Object.keys(manifest.allowScripts))
    const neither = running
      .map(([at]) => at.replace(/^.*node_modules\//, ""))
      .filter((name) => !allowed.has(name))
    assert.deepStrictEqual(neither, [])
  })

  it("F154 F155 F156: passes the check before a release, offline, in four packages", async () => {
    const { code, stderr, stdout } = await Published.releaseCheck(made.tarball)
    assert.strictEqual(stderr, "")
    assert.strictEqual(code, 0)
    const entries = publicModules
      .map(subpathOf)
      .filter((entry) => !/^\.\/(?:node(?!\/NodeSqlite)|prices|acp(?:$|\/AcpAgent))/.test(entry))
    assert.isAbove(entries.length, 50)
    assert.match(stdout, /^aws4fetch@\S+, effect@\S+, effect-agent@\S+, re2js@\S+: 4 packages, /)
    assert.include(stdout, `: 4 packages, ${entries.length} entries, and the program runs\n`)
  })

  it("F156: is not released when a package it needs is nowhere to be had", async () => {
    assert.strictEqual(manifest.scripts.prepublishOnly, "npm run -s release-check")
    assert.strictEqual(manifest.scripts["release-check"], "node scripts/release-check.mjs")
    const dependencies = { "effect-agent-not-there": "0.1.0" }
    const sibling = await Published.impostor("sibling", { dependencies })
    const { code, stderr } = await Published.releaseCheck(sibling)
    assert.strictEqual(code, 1)
    assert.match(stderr, /effect-agent-not-there/)
  })

  it("F156: is not released when it imports what it does not ask for, nor with a script at install", async () => {
    const broken = [
      await Published.impostor("undeclared", {}, 'import "zod"'),
      await Published.impostor("scripted", { scripts: { postinstall: "true" } })
    ]
    const said = await Promise.all(broken.map(Published.releaseCheck))
    assert.deepStrictEqual(
      said.map(({ code }) => code),
      [1, 1]
    )
    assert.match(said[0]?.stderr ?? "", /Cannot find package 'zod'/)
    assert.match(said[1]?.stderr ?? "", /does something when it is installed: postinstall/)
  })

  it.live("F154 F157: does the quick start of the README, and runs as a program, from an empty folder", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.promise(() => Published.install(made.tarball))
      const [, code = ""] = /```ts\n(\/\/ examples\/quickstart\.ts\n[^]*?)```/.exec(read("README.md")) ?? []
      writeFileSync(join(folder, "quickstart.ts"), code)
      const url = yield* Program.server((_, body, response) =>
        body.includes(`"function_call_output"`)
          ? Program.says(response, ["Yes: 4 °C and rain."])
          : Program.calls(response, "weather", { city: "Oslo" })
      )
      const env = { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1`, CI: "true" }
      const answered = yield* Effect.promise(() =>
        Published.run(process.execPath, ["quickstart.ts"], { cwd: folder, env })
      )
      assert.deepStrictEqual([answered.stdout, answered.code], ["Yes: 4 °C and rain.", 0])
      const listed = yield* Effect.promise(() =>
        Published.run(join(folder, "node_modules/.bin/effect-agent"), ["-m", "local/rules", "list"], {
          cwd: folder,
          env
        })
      )
      assert.strictEqual(listed.code, 0)
      assert.include(listed.stdout, "quickstart.ts")
    })
  )
})
