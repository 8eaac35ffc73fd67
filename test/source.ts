/**
 * The source of the package, parsed: its files, their lines of code and their functions.
 */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript-5.9"

const root = join(import.meta.dirname, "../src")

/** The paths of all modules, from `src`. */
export const files: ReadonlyArray<string> = globSync("**/*.ts", { cwd: root }).sort()

/** The text of a module. */
export const textOf = (file: string): string => readFileSync(join(root, file), "utf8")

const trees = new Map<string, ts.SourceFile>()

/** The syntax tree of a module, parsed once. */
export const treeOf = (file: string): ts.SourceFile => {
  const known = trees.get(file)
  if (known !== undefined) return known
  const tree = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true)
  trees.set(file, tree)
  return tree
}

/** The lines of code of a node: lines with a token on them. Comments and blank lines do not count. */
export const linesOf = (node: ts.Node): number => {
  const tree = node.getSourceFile()
  const lines = new Set<number>()
  const lineAt = (position: number) => tree.getLineAndCharacterOfPosition(position).line
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return
    const children = node.getChildren(tree)
    children.forEach(visit)
    if (children.length > 0 || node.getWidth(tree) === 0) return
    for (let line = lineAt(node.getStart(tree)); line <= lineAt(node.getEnd()); line++) lines.add(line)
  }
  visit(node)
  return lines.size
}

/** The text of a module without its comments. */
export const codeOf = (file: string): string => {
  const tree = treeOf(file)
  let code = ""
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return
    const children = node.getChildren(tree)
    children.forEach(visit)
    if (children.length === 0) code += `${node.getText(tree)}\n`
  }
  visit(tree)
  return code
}

interface Named {
  readonly name: string
  readonly lines: number
}

/** The functions of a module with their names and lines of code. A function without a name has that of its surroundings. */
export const functionsOf = (file: string): ReadonlyArray<Named> => {
  const found: Array<Named> = []
  const visit = (node: ts.Node, around: string): void => {
    const name = nameOf(node) ?? around
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      found.push({ name, lines: linesOf(node) })
    }
    ts.forEachChild(node, (child) => visit(child, name))
  }
  visit(treeOf(file), "")
  return found
}

const nameOf = (node: ts.Node): string | undefined =>
  (ts.isVariableDeclaration(node) ||
    ts.isFunctionDeclaration(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertyAssignment(node)) &&
  node.name !== undefined &&
  ts.isIdentifier(node.name)
    ? node.name.text
    : undefined
