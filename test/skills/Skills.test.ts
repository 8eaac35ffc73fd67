import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { Agent } from "effect-agent"
import { ContextFiles, Skills, Workspace } from "effect-agent/skills"
import { ScriptedProvider } from "effect-agent/testing"
import { resultTexts } from "../behaviour/play.ts"

/** Makes a folder with these files. A value that begins with `-> ` is a symbolic link. */
const folder = Effect.fnUntraced(function* (contents: Readonly<Record<string, string | Uint8Array>>) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* files.realPath(yield* files.makeTempDirectoryScoped())
  for (const [name, text] of Object.entries(contents)) {
    const file = path.join(root, name)
    yield* files.makeDirectory(path.dirname(file), { recursive: true })
    if (typeof text !== "string") yield* files.writeFile(file, text)
    else if (text.startsWith("-> ")) yield* files.symlink(text.slice(3), file)
    else yield* files.writeFileString(file, text)
  }
  return root
})

const inFolder = <A, E>(
  contents: Readonly<Record<string, string | Uint8Array>>,
  test: (root: string) => Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>
) => Effect.flatMap(folder(contents), test).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const skill = (name: string, more = "") => `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n`

describe("context files", () => {
  it.effect("come from the root of the repository to the folder, AGENTS.md before CLAUDE.md", () =>
    inFolder(
      {
        "AGENTS.md": "outside",
        "repo/.git/HEAD": "",
        "repo/AGENTS.md": "one",
        "repo/CLAUDE.md": "not this one",
        "repo/a/CLAUDE.md": "\ufefftwo\r\n",
        "repo/a/b/AGENTS.md": "  \n",
        "repo/a/b/c/AGENTS.md": "three",
        "repo/a/x/AGENTS.md": "beside"
      },
      (root) =>
        Effect.gen(function* () {
          const found = yield* ContextFiles.find({ cwd: `${root}/repo/a/b/c` })
          assert.deepStrictEqual(
            found.map(({ path, text }) => [path.slice(root.length), text]),
            [
              ["/repo/AGENTS.md", "one"],
              ["/repo/a/CLAUDE.md", "two\r\n"],
              ["/repo/a/b/c/AGENTS.md", "three"]
            ]
          )
          assert.strictEqual(found[0]?.insteadOf, `${root}/repo/CLAUDE.md`)
          const text = ContextFiles.render(found)
          assert.isBelow(text.indexOf("one"), text.indexOf("two"))
          assert.include(text, `<context_file path="${root}/repo/a/CLAUDE.md">\ntwo\n</context_file>`)
          const outer = yield* ContextFiles.find({ cwd: `${root}/repo/a`, root })
          assert.deepStrictEqual(
            outer.map(({ text }) => text.trim()),
            ["outside", "one", "two"]
          )
        })
    )
  )

  it.effect("outside a repository are those of the folder alone", () =>
    inFolder({ "AGENTS.md": "one", "a/AGENTS.md": "two" }, (root) =>
      Effect.gen(function* () {
        const found = yield* ContextFiles.find({ cwd: `${root}/a` })
        assert.deepStrictEqual(
          found.map(({ text }) => text),
          ["two"]
        )
        assert.deepStrictEqual(yield* ContextFiles.find({ cwd: `${root}/nowhere/else` }), [])
        assert.strictEqual(ContextFiles.render([]), "")
      })
    )
  )

  it.effect("are cut at a character, and say so", () =>
    inFolder({ ".git/HEAD": "", "AGENTS.md": "é".repeat(100) }, (root) =>
      Effect.gen(function* () {
        const found = yield* ContextFiles.find({ cwd: root, maxBytes: 33 })
        assert.deepInclude(found[0], { text: "é".repeat(16), bytes: 200, isCut: true })
        assert.include(ContextFiles.render(found), `${"é".repeat(16)}\n[cut: the file has 200 bytes]\n`)
      })
    )
  )

  it.effect("that are links out of the repository, folders or gone are skipped", () =>
    inFolder(
      {
        secret: "key",
        "repo/.git/HEAD": "",
        "repo/AGENTS.md": "-> ../secret",
        "repo/a/AGENTS.md": "-> gone",
        "repo/a/b/AGENTS.md/x": "a folder",
        "repo/a/b/c/AGENTS.md": "-> CLAUDE.md",
        "repo/a/b/c/CLAUDE.md": "linked within"
      },
      (root) =>
        Effect.gen(function* () {
          const found = yield* ContextFiles.find({ cwd: `${root}/repo/a/b/c` })
          assert.deepStrictEqual(
            found.map(({ text }) => text),
            ["linked within"]
          )
        })
    )
  )
})

describe("the front matter of a skill", () => {
  const cases: ReadonlyArray<readonly [text: string, fault: string]> = [
    ["# pdf\n", "1: there is no front matter: the first line must be three hyphens"],
    ["", "1: there is no front matter: the first line must be three hyphens"],
    ["---\nname: pdf\n", "1: the front matter does not end: a line of three hyphens is missing"],
    ["---\n---\nbody", "1: the front matter has no `name` and `description`"],
    ["---\n- name\n---\n", "1: the front matter has no `name` and `description`"],
    ["---\ndescription: x\n---\n", "1: `name` is missing"],
    ["---\ndescription: x\nname:\n---\n", "3: `name` is missing"],
    ["---\nname: 7\ndescription: x\n---\n", "2: `name` must be a text: write it in quotes"],
    [
      "---\nname: PDF\ndescription: x\n---\n",
      "2: `name` must have 1 to 64 lower-case letters, digits and single hyphens between them"
    ],
    [
      "---\nname: a--b\ndescription: x\n---\n",
      "2: `name` must have 1 to 64 lower-case letters, digits and single hyphens between them"
    ],
    [
      "---\nname: csv\ndescription: x\n---\n",
      '2: `name` must be the name of the folder, "pdf", and is "csv"'
    ],
    ["---\nname: pdf\n---\n", "1: `description` is missing"],
    ["---\nname: pdf\nlicense: MIT\ndescription: ''\n---\n", "4: `description` is empty"],
    [
      `---\nname: pdf\ndescription: ${"x".repeat(1_025)}\n---\n`,
      "3: `description` has 1025 characters, and 1,024 are allowed"
    ],
    ["---\nname: pdf\ndescription: {a: [}\n---\n", "1: Expected ',' at flow offset 5"],
    ["---\nname: pdf\nmetadata:\n\ta: b\n---\n", "4: Tabs cannot be used for YAML indentation"]
  ]
  it.effect.each(cases)("%j is a fault with its line", ([text, fault]) =>
    inFolder({ "pdf/SKILL.md": text }, (root) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Skills.read(`${root}/pdf`))
        assert.strictEqual(error.message, `${root}/pdf/SKILL.md:${fault}`)
      })
    )
  )

  const plain = [
    ["Use when: a file is broken", "Use when: a file is broken"],
    ["[beta] reads: all", "[beta] reads: all"],
    ['"PDF": the reader', '"PDF": the reader'],
    ["@pdf reads `all`", "@pdf reads `all`"],
    ["Use when:\n  - never: this\n  is plain", "Use when: - never: this is plain"],
    ["Fine.\nmetadata:\n  trigger: a: b", "Fine."]
  ] as const
  it.effect.each(plain)("is read where a value wants quotes and has none: %j", ([value, description]) =>
    inFolder(
      { "pdf/SKILL.md": `---\nname: pdf\ndescription: ${value}\nallowed-tools: [Read, Bash]\n---\n` },
      (root) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* Skills.read(`${root}/pdf`)).description, description)
        })
    )
  )

  it.effect("may have other members, block texts and Windows line ends", () =>
    inFolder(
      {
        "pdf/SKILL.md":
          '\ufeff---\r\nname: pdf\r\ndescription: >-\r\n  Reads\r\n  PDF files: all.\r\nmetadata:\r\n  version: "1.0"\r\nallowed-tools: Read\r\n---\r\nUse it.\r\n---\r\n'
      },
      (root) =>
        Effect.gen(function* () {
          const read = yield* Skills.read(`${root}/pdf`)
          assert.deepStrictEqual(read, {
            name: "pdf",
            description: "Reads PDF files: all.",
            folder: `${root}/pdf`
          })
        })
    )
  )
})

describe("skills", () => {
  it.effect("are found by name, the first of a name counts, and faults do not hide the others", () =>
    inFolder(
      {
        "one/b/SKILL.md": skill("b"),
        "one/a/SKILL.md": skill("a"),
        "one/no-skill/README.md": "",
        "one/broken/SKILL.md": "broken",
        "two/a/SKILL.md": skill("a"),
        "two/away/SKILL.md": "-> ../../one/a/SKILL.md",
        "two/c/SKILL.md": skill("c")
      },
      (root) =>
        Effect.gen(function* () {
          const { problems, skills } = yield* Skills.find([`${root}/one`, `${root}/gone`, `${root}/two`])
          assert.deepStrictEqual(
            skills.map(({ folder }) => folder.slice(root.length)),
            ["/one/a", "/one/b", "/two/c"]
          )
          assert.deepStrictEqual(
            problems.map(({ message }) => message.replaceAll(root, "")),
            [
              "/one/broken/SKILL.md:1: there is no front matter: the first line must be three hyphens",
              "/two/a: the skill a of /one/a comes first",
              "/two/away/SKILL.md: it is no file within the folder of the skill"
            ]
          )
          assert.deepStrictEqual(Skills.render(skills).split("\n").slice(1), [
            "- a: Does a.",
            "- b: Does b.",
            "- c: Does c."
          ])
        })
    )
  )

  it.effect("the tool gives instructions and files, and nothing outside the folder", () =>
    inFolder(
      {
        secret: "key",
        "skills/pdf/SKILL.md": `${skill("pdf")}\nUse pdftotext.\n`,
        "skills/pdf/scripts/run.sh": "echo hi\n",
        "skills/pdf/forms.md": "Forms.",
        "skills/pdf/image.bin": new Uint8Array([0, 1, 2]),
        "skills/pdf/link": "-> ../../secret",
        "skills/pdf/node_modules/x/index.js": ""
      },
      (root) =>
        Effect.gen(function* () {
          const { skills } = yield* Skills.find([`${root}/skills`])
          const calls = [
            { name: "pdf" },
            { name: "pdf", file: "scripts/run.sh" },
            { name: "pdf", file: "link" },
            { name: "pdf", file: "../../secret" },
            { name: "pdf", file: `${root}/secret` },
            { name: "pdf", file: "scripts" },
            { name: "pdf", file: "image.bin" },
            { name: "csv" }
          ]
          const script = [
            ...calls.map((params) => ScriptedProvider.toolCall("skill", params)),
            ScriptedProvider.text("done")
          ]
          const agent = yield* Agent.make({ model: "m", tools: [Skills.tool(skills)] }).pipe(
            Effect.provide(ScriptedProvider.layer(script))
          )
          const { newMessages } = yield* agent.prompt("hi")
          assert.deepStrictEqual(resultTexts(newMessages), [
            [
              "Use pdftotext.",
              "",
              `Files of the skill pdf, in the folder ${root}/skills/pdf:`,
              "- forms.md",
              "- image.bin",
              "- link",
              "- scripts/run.sh"
            ].join("\n"),
            "echo hi\n",
            'The skill pdf has no file "link"',
            'The skill pdf has no file "../../secret"',
            `The skill pdf has no file ${JSON.stringify(`${root}/secret`)}`,
            'The skill pdf has no file "scripts"',
            '"image.bin" is no text file',
            'There is no skill "csv". Skills: pdf'
          ])
        }).pipe(Effect.scoped)
    )
  )

  it.effect("are loaded when they are used: a change on the disk counts", () =>
    inFolder({ "skills/pdf/SKILL.md": `${skill("pdf")}old` }, (root) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const { skills } = yield* Skills.find([`${root}/skills`])
        const tool = Skills.tool(skills)
        assert.strictEqual(yield* tool.execute({ name: "pdf" }), "old")
        yield* files.writeFileString(`${root}/skills/pdf/SKILL.md`, `${skill("pdf")}new`)
        assert.strictEqual(yield* tool.execute({ name: "pdf" }), "new")
        yield* files.writeFileString(`${root}/skills/pdf/SKILL.md`, "none")
        assert.strictEqual((yield* Effect.flip(tool.execute({ name: "pdf" })))._tag, "InvalidSkill")
      })
    )
  )
})

describe("context files that are left out", () => {
  it.effect("are named with the reason, and the next name counts", () =>
    inFolder({ "repo/.git/HEAD": "", "repo/CLAUDE.md": "two", key: "SECRET" }, (root) =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        yield* files.symlink(`${root}/key`, `${root}/repo/AGENTS.md`)
        yield* files.makeDirectory(`${root}/repo/a`)
        yield* files.symlink("nowhere", `${root}/repo/a/AGENTS.md`)
        const { contextFiles, leftOut } = yield* Workspace.load({ cwd: `${root}/repo/a` })
        assert.deepStrictEqual(
          contextFiles.map(({ text }) => text),
          ["two"]
        )
        assert.deepStrictEqual(
          leftOut.map(({ detail, path }) => `${path}: ${detail}`.replaceAll(root, "")),
          ["/repo/AGENTS.md: it is no file within /repo", "/repo/a/AGENTS.md: it is a link to nothing"]
        )
      })
    )
  )
})

describe("workspace", () => {
  const project = {
    ".git/HEAD": "",
    "AGENTS.md": "Use tabs.",
    ".agents/skills/a/SKILL.md": skill("a"),
    "src/.claude/skills/a/SKILL.md": `---\nname: a\ndescription: Nearer.\n---\nThe nearer one.`,
    "src/.claude/skills/b/SKILL.md": "broken"
  }

  it.effect("has the text for the system prompt and tools without requirements", () =>
    inFolder({ ...project, "home/c/SKILL.md": skill("c") }, (root) =>
      Effect.gen(function* () {
        const made = yield* Workspace.load({ cwd: `${root}/src`, skillFolders: [`${root}/home`] })
        assert.include(made.system, "Use tabs.\n</context_file>\n\nSkills have")
        assert.isTrue(made.system.endsWith("\n- a: Nearer.\n- c: Does c."))
        assert.strictEqual(made.problems.length, 2)
        const script = [ScriptedProvider.toolCall("skill", { name: "a" }), ScriptedProvider.text("done")]
        const agent = yield* Agent.make({ model: "m", system: made.system, tools: made.tools }).pipe(
          Effect.provide(ScriptedProvider.layer(script))
        )
        const { newMessages } = yield* agent.prompt("hi")
        assert.deepStrictEqual(resultTexts(newMessages), ["The nearer one."])
      }).pipe(Effect.scoped)
    )
  )

  it.effect("has nothing of a part that is switched off, or that is not there", () =>
    inFolder(project, (root) =>
      Effect.gen(function* () {
        const one = yield* Workspace.load({ cwd: root, contextFiles: false })
        assert.notInclude(one.system, "Use tabs.")
        assert.strictEqual(one.tools.length, 1)
        const other = yield* Workspace.load({ cwd: root, skills: false })
        assert.include(other.system, "Use tabs.")
        assert.deepStrictEqual(other.tools, [])
        const none = yield* Workspace.load({ cwd: root, skills: false, contextFiles: false })
        assert.strictEqual(none.system, "")
      })
    )
  )
})

describe("skills that are links", () => {
  it.effect("out of the repository are problems, and within it are skills", () =>
    inFolder(
      {
        "keys/one/SKILL.md": skill("one"),
        "other/SKILL.md": skill("other"),
        "repo/.git/HEAD": "",
        "repo/shared/two/SKILL.md": skill("two"),
        "repo/.agents/skills": "-> ../../keys",
        "repo/.claude/skills/other": "-> ../../../other",
        "repo/.claude/skills/two": "-> ../../shared/two"
      },
      (root) =>
        Effect.gen(function* () {
          const { problems, skills } = yield* Workspace.load({ cwd: `${root}/repo` })
          assert.deepStrictEqual(
            skills.map(({ name }) => name),
            ["two"]
          )
          assert.deepStrictEqual(
            problems.map(({ detail }) => detail),
            [`${root}/keys/one`, `${root}/other`].map((real) => `it leads out of the project, to ${real}`)
          )
          const outer = yield* Workspace.load({ cwd: `${root}/repo`, skillFolders: [`${root}/keys`] })
          assert.include(
            outer.skills.map(({ name }) => name),
            "one"
          )
        })
    )
  )
})
