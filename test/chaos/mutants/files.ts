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
    file: "src/tools/Folder.ts",
    from: "Root.isVirtual(where) || !roots.some((root) => Root.contains(paths, root, where))",
    to: "false",
    test: "test/chaos/paths.test.ts"
  },
  {
    fault: "F142",
    without: "a hard link is not read",
    file: "src/tools/Folder.ts",
    from: 'folder.options.hardLinks !== "allow" &&',
    to: "false &&",
    test: "test/tools/Root.test.ts"
  }
]
