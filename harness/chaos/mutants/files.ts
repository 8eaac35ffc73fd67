/** Guards of the file and shell tools, of secrets and the terminal, and of what is published. */
import type { Mutant } from "./Mutant.ts"

export const mutants: ReadonlyArray<Mutant> = [
  {
    fault: "F141",
    without: "paths that go up and out are refused",
    file: "src/tools/Root.ts",
    from: 'return relative !== ".." && !relative.startsWith(`..${paths.sep}`) && !paths.isAbsolute(relative)',
    to: 'return relative !== ".." && !paths.isAbsolute(relative)',
    test: "test/tools/Root.test.ts"
  },
  {
    fault: "F142",
    without: "a path is judged by where its links lead",
    file: "src/tools/Root.ts",
    from: "return { existing: yield* realPath(path, at), missing }",
    to: "return { existing: at, missing }",
    test: "test/tools/Root.test.ts"
  },
  {
    fault: "F142",
    without: "a folder is judged once it is open",
    file: "src/tools/internal/Folder.ts",
    from: "Root.isVirtual(where) || !roots.some((root) => Root.contains(paths, root, where))",
    to: "false",
    test: "test/chaos/paths.slow.test.ts"
  },
  {
    fault: "F142",
    without: "a hard link is not read",
    file: "src/tools/internal/Folder.ts",
    from: 'hardLinks !== "allow" &&',
    to: "false &&",
    test: "test/tools/Root.test.ts"
  },
  {
    fault: "F145",
    without: "the new content is written beside the file",
    file: "src/tools/Files.ts",
    from: "const temporary = folder.at(`.effect-agent-${crypto.randomUUID()}.tmp`)",
    to: "const temporary = folder.at(name); yield* Effect.ignore(files.remove(temporary))",
    test: "test/tools/WriteTool.slow.test.ts"
  },
  {
    fault: "F145",
    without: "the mode is kept",
    file: "src/tools/Files.ts",
    from: "const mode = previous === undefined ? 0o666 : previous.mode & 0o7777",
    to: "const mode = 0o666",
    test: "test/tools/WriteTool.slow.test.ts"
  },
  {
    fault: "F145",
    without: "a file that changed is not overwritten",
    file: "src/tools/Files.ts",
    from: "      if (!isUnchanged(previous, Option.getOrUndefined(current))) return yield* Folder.changed(shown)",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "a file that changed its size is not overwritten",
    file: "src/tools/Files.ts",
    from: "previous.size === current.size &&",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "a file that is another one by now is not overwritten",
    file: "src/tools/Files.ts",
    from: "Folder.sameFile(previous, current) &&",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "a file that was written meanwhile is not overwritten",
    file: "src/tools/Files.ts",
    from: "Option.getOrUndefined(previous.mtime)?.getTime() === Option.getOrUndefined(current.mtime)?.getTime()",
    to: "true",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "a file that was made or removed meanwhile is not overwritten",
    file: "src/tools/Files.ts",
    from: "? previous === current",
    to: "? true",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "the mode is set whatever the mask of the process",
    file: "src/tools/Files.ts",
    from: "      yield* files.chmod(path, mode)",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "the content is on the disk before it gets its name",
    file: "src/tools/Files.ts",
    from: "    yield* file.sync",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F145",
    without: "the name is on the disk",
    file: "src/tools/Files.ts",
    from: "yield* Effect.ignore(folder.sync)",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F142",
    without: "a path is looked at again with the lock",
    file: "src/tools/Files.ts",
    from: "    if (pathOf(place) !== where) return yield* Folder.changed(path)",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F142",
    without: "an edit is of the file that was looked at",
    file: "src/tools/EditTool.ts",
    from: "  if (!Folder.sameFile(info, opened.info)) return yield* Folder.changed(path)",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F142",
    without: "a file is the one that was looked at",
    file: "src/tools/internal/Folder.ts",
    from: "!sameFile(entry, info) || ",
    to: "",
    test: "test/tools/AtomicWrite.test.ts"
  },
  {
    fault: "F146",
    without: "one command that no rule covers has the line asked about",
    file: "src/tools/CommandRules.ts",
    from: "commands.success.find((words) => !allow.some((rule) => begins(rule, words)))",
    to: "commands.success.slice(0, 1).find((words) => !allow.some((rule) => begins(rule, words)))",
    test: "test/faults/commands.slow.test.ts"
  },
  {
    fault: "F146",
    without: "a line end parts commands",
    file: "src/tools/CommandRules.ts",
    from: "const wordAt = /^ *(?:",
    to: "const wordAt = /^[ \\n]*(?:",
    test: "test/tools/CommandRules.test.ts"
  },
  {
    fault: "F146",
    without: "double quotes hold no expansion",
    file: "src/tools/CommandRules.ts",
    from: '"[ #%-[\\]-_a-~]*"',
    to: '"[ #$%-[\\]-_a-~]*"',
    test: "test/tools/CommandRules.test.ts"
  },
  {
    fault: "F146",
    without: "an assignment is no program",
    file: "src/tools/CommandRules.ts",
    from: 'program.includes("=") || ',
    to: "",
    test: "test/tools/CommandRules.test.ts"
  },
  {
    fault: "F146",
    without: "a command that may be a denied one is asked about",
    file: "src/tools/CommandRules.ts",
    from: "if (suspected !== undefined)",
    to: "if (false)",
    test: "test/tools/CommandRules.test.ts"
  },
  {
    fault: "F147",
    without: "a command is no option of its shell",
    file: "src/tools/ShellTool.ts",
    from: 'args: ["-c", ` ${command}`]',
    to: 'args: ["-c", command]',
    test: "test/faults/commands.slow.test.ts"
  },
  {
    fault: "F147",
    without: "a command is one argument",
    file: "src/tools/ShellTool.ts",
    from: `'exec "$@" 2>&1'`,
    to: `'eval exec "$@" 2>&1'`,
    test: "test/faults/commands.slow.test.ts"
  },
  {
    fault: "F151",
    without: "variables with the name of a secret are left out",
    file: "src/tools/ChildEnvironment.ts",
    from: "secretName.test(name.toUpperCase()) ||",
    to: "",
    test: "test/faults/commands.slow.test.ts"
  },
  {
    fault: "F152",
    without: "control characters above the ASCII ones are shown",
    file: "src/cli/terminal/Inert.ts",
    from: "const control = /(?![\\n\\t])[\\p{Cc}",
    to: "const control = /(?![\\n\\t])[\\u0000-\\u001f\\u007f",
    test: "test/faults/terminal.test.ts"
  },
  {
    fault: "F152",
    without: "the text of an answer is made inert",
    file: "src/cli/terminal/Output.ts",
    from: "const shown = Inert.text(text)",
    to: "const shown = text",
    test: "test/faults/cli.slow.test.ts"
  },
  {
    fault: "F152",
    without: "the name of a tool is made inert",
    file: "src/cli/terminal/Output.ts",
    from: "${Inert.line(toolName)}: ${summary}${time}`",
    to: "${toolName}: ${summary}${time}`",
    test: "test/faults/terminal.test.ts"
  },
  {
    fault: "F152",
    without: "a question shows what reorders and hides",
    file: "src/cli/terminal/Inert.ts",
    from: "[\\p{C}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800\\ufffc\\u{13441}\\u{13442}\\u{16fe4}\\u{1d159}]|",
    to: "[\\p{Cc}]|",
    test: "test/faults/terminal.test.ts"
  },
  {
    fault: "F152",
    without: "JSON escapes what a terminal obeys above the ASCII characters",
    file: "src/cli/terminal/Inert.ts",
    from: "/[\\u007f-\\u009f\\u061c",
    to: "/[\\u007f\\u061c",
    test: "test/faults/terminal.test.ts"
  },
  {
    fault: "F153",
    without: "a reader who has left is noticed",
    file: "src/cli/ExitCode.ts",
    from: 'process.stdout.on("error", on("closed"))',
    to: "",
    test: "test/faults/cli.slow.test.ts"
  },
  {
    fault: "F153",
    without: "SIGINT is heard",
    file: "src/cli/ExitCode.ts",
    from: 'process.on("SIGINT", () => interrupt())',
    to: "",
    test: "test/faults/cli.slow.test.ts"
  },
  {
    fault: "F153",
    without: "stderr may be gone",
    file: "src/cli/ExitCode.ts",
    from: 'process.stderr.on("error", ignore)',
    to: "",
    test: "test/faults/cli.slow.test.ts"
  },
  {
    fault: "F150",
    without: "secrets are cut out of what a server says",
    file: "src/providers/internal/secrets.ts",
    from: 'return (text) => (text === "" ? text : cutOut(text, (secrets ??= all())))',
    to: "return (text) => text",
    test: "test/faults/secrets.slow.test.ts"
  },
  {
    fault: "F150",
    without: "they are found however they are spelled",
    file: "src/providers/internal/secrets.ts",
    from: "depth < maxDepth;",
    to: "depth < 1;",
    test: "test/faults/secrets.slow.test.ts"
  },
  {
    fault: "F150",
    without: "the beginning of one is enough where a text was cut",
    file: "src/providers/internal/secrets.ts",
    from: "return begun === undefined ? whole : [...whole, [behind + cut.startOf(begun), raw.length]]",
    to: "return whole",
    test: "test/faults/secrets.slow.test.ts"
  },
  {
    fault: "F150",
    without: "keys that were replaced are remembered",
    file: "src/providers/internal/secrets.ts",
    from: ".slice(-maxUsed)",
    to: ".slice(-1)",
    test: "test/faults/secrets.slow.test.ts"
  },
  {
    fault: "F150",
    without: "spans are told without secrets",
    file: "src/providers/internal/connection.ts",
    from: "Context.add(Tracer.Tracer, Secrets.redacting(tracer, redact)),",
    to: "",
    test: "test/faults/secrets.slow.test.ts"
  },
  {
    fault: "F150",
    without: "an answer that ends badly is told without secrets",
    file: "src/providers/internal/answer.ts",
    from: "return this.reworded(missing)",
    to: "return missing",
    test: "test/faults/secrets.slow.test.ts"
  },
  {
    fault: "F150",
    without: "a redirect is told by its origin alone",
    file: "src/providers/internal/connection.ts",
    from: 'HttpConnection.redirectOf(status, redact(headers["location"] ?? ""))',
    to: 'status < 300 ? undefined : new InvalidRequest({ detail: headers["location"] ?? "" })',
    test: "test/faults/secretsElsewhere.slow.test.ts"
  },
  {
    fault: "F154",
    without: "nothing runs at install",
    file: "package.json",
    from: `"start": "node scripts/start.mjs",`,
    to: `"postinstall": "true", "start": "node scripts/start.mjs",`,
    test: "test/faults/supply.slow.test.ts"
  },
  {
    fault: "F155",
    without: "versions for development are exact",
    file: "package.json",
    from: '"openai": "6.49.0"',
    to: '"openai": "^6.49.0"',
    test: "test/faults/supply.slow.test.ts"
  },
  {
    fault: "F155",
    without: "effect is all that is needed",
    file: "package.json",
    from: '"peerDependencies": {',
    to: '"dependencies": { "zod": "4.6.7" }, "peerDependencies": {',
    test: "test/faults/supply.slow.test.ts"
  },
  {
    fault: "F156",
    without: "a check that fails stops the release",
    file: "scripts/release-check.mjs",
    from: "process.exitCode = 1",
    to: "process.exitCode = 0",
    test: "test/faults/supply.slow.test.ts"
  },
  {
    fault: "F157",
    without: "provenance is attested",
    file: "package.json",
    from: '"provenance": true',
    to: '"provenance": false',
    test: "test/faults/supply.slow.test.ts"
  },
  {
    fault: "F157",
    without: "files are allowed by their kind",
    file: "package.json",
    from: '"src/**/*.ts",',
    to: '"src",',
    test: "test/faults/supply.slow.test.ts"
  },
  {
    fault: "that fails leaves files and folders as they are",
    without: "a file changes only once its earlier content is kept",
    file: "src/tools/Files.ts",
    from: "      yield* Effect.mapError(keeper.file(change), ({ detail }) => Folder.unchanged(path, detail))\n",
    to: "      void change\n",
    test: "test/tools/Keeping.test.ts"
  },
  {
    fault: "that fails leaves files and folders as they are",
    without: "a command runs only once what it may change is kept",
    file: "src/tools/ShellTool.ts",
    from: "keeper === undefined\n        ? running",
    to: "true\n        ? running",
    test: "test/tools/Keeping.test.ts"
  }
]
