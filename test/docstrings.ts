/**
 * The docstrings of the public modules: what each exported declaration says, and the examples in it.
 */
import { dirname, join } from "node:path"
import ts from "typescript-5.9"
import { publicModules } from "../scripts/publicModules.ts"
import { textOf, treeOf } from "./source.ts"

/** The public modules, as paths from `src`. */
export const modules: ReadonlyArray<string> = publicModules.map((module) => `${module}.ts`)

/** An exported name. */
export interface Declared {
  readonly name: string
  /** The module and the line of the declaration, which may be in `internal`. */
  readonly where: string
  /** The text of its docstring without the stars. */
  readonly doc: string | undefined
  /** Whether it can be called. */
  readonly isFunction: boolean
  /** The members of an interface, a struct or a union of tagged cases. */
  readonly members: ReadonlyArray<Member>
}

/** A member of an exported declaration. */
export interface Member {
  readonly name: string
  readonly doc: string | undefined
}

/** The docstring at the head of a module. */
export const headOf = (file: string): string | undefined => {
  const [first] = ts.getLeadingCommentRanges(textOf(file), 0) ?? []
  const text = first === undefined ? "" : textOf(file).slice(first.pos, first.end)
  return text.startsWith("/**") ? unstarred(text) : undefined
}

/** The exported names of a module. A namespace, and what is marked `@internal`, does not count. */
export const exportsOf = (file: string): ReadonlyArray<Declared> => {
  const found = new Map<string, Declared>()
  const names = treeOf(file).statements.flatMap((statement) =>
    ts.isExportDeclaration(statement) ? namesIn(statement) : namesOf(statement).map(([name]) => name)
  )
  for (const name of names) {
    const declared = declarationOf(file, name, name)
    if (declared !== undefined && declared.doc?.includes("@internal") !== true) found.set(name, declared)
  }
  return [...found.values()]
}

const namesIn = ({ exportClause }: ts.ExportDeclaration): ReadonlyArray<string> =>
  exportClause !== undefined && ts.isNamedExports(exportClause)
    ? exportClause.elements.map(({ name }) => name.text)
    : []

/** The declaration behind an exported name, followed through re-exports. */
const declarationOf = (file: string, name: string, as: string): Declared | undefined => {
  const { statements } = treeOf(file)
  const own = statements.flatMap((statement) =>
    namesOf(statement).flatMap(([known, node]) => (known === name ? [{ statement, node }] : []))
  )
  const [first] = own
  if (first !== undefined) {
    const tree = treeOf(file)
    const line = tree.getLineAndCharacterOfPosition(first.statement.getStart(tree)).line + 1
    return {
      name: as,
      where: `${file}:${line}`,
      // A schema and its type have one docstring, which editors show for both.
      doc: own.map(({ statement }) => docOf(statement)).find((doc) => doc !== undefined),
      isFunction: own.some(({ node }) => isFunction(node)),
      members: own.flatMap(({ node }) => membersOf(node))
    }
  }
  for (const statement of statements) {
    const [from, original] = originOf(statement, name) ?? []
    if (from !== undefined && original !== undefined) {
      return declarationOf(join(dirname(file), from), original, as)
    }
    const renamed = renamedIn(statement, name)
    if (renamed !== undefined) return declaredBy(file, renamed, as)
  }
  return undefined
}

/** The element that exports a function of the module by another name. */
const renamedIn = (statement: ts.Statement, name: string): ts.ExportSpecifier | undefined =>
  ts.isExportDeclaration(statement) &&
  statement.moduleSpecifier === undefined &&
  statement.exportClause !== undefined &&
  ts.isNamedExports(statement.exportClause)
    ? statement.exportClause.elements.find((element) => element.name.text === name)
    : undefined

const declaredBy = (file: string, element: ts.ExportSpecifier, name: string): Declared => {
  const tree = treeOf(file)
  const line = tree.getLineAndCharacterOfPosition(element.getStart(tree)).line + 1
  return { name, where: `${file}:${line}`, doc: docOf(element), isFunction: true, members: [] }
}

/** The module and the name that an import or a re-export takes a name from. */
const originOf = (
  statement: ts.Statement,
  name: string
): readonly [from: string, name: string] | undefined => {
  if (!ts.isExportDeclaration(statement) && !ts.isImportDeclaration(statement)) return undefined
  const from = statement.moduleSpecifier
  if (from === undefined || !ts.isStringLiteral(from)) return undefined
  const element = elementsOf(statement).find((element) => element.name.text === name)
  return element === undefined ? undefined : [from.text, (element.propertyName ?? element.name).text]
}

const elementsOf = (
  statement: ts.ExportDeclaration | ts.ImportDeclaration
): ReadonlyArray<ts.ExportSpecifier | ts.ImportSpecifier> => {
  const clause = ts.isExportDeclaration(statement)
    ? statement.exportClause
    : statement.importClause?.namedBindings
  return clause !== undefined && (ts.isNamedExports(clause) || ts.isNamedImports(clause))
    ? [...clause.elements]
    : []
}

type Named = readonly [name: string, node: ts.Node]

/** The names that a statement exports, each with the node that has its members. */
const namesOf = (statement: ts.Statement): ReadonlyArray<Named> => {
  const isExported =
    ts.canHaveModifiers(statement) &&
    ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)
  if (isExported !== true) return []
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.flatMap(namesOfVariable)
  const isNamed =
    ts.isFunctionDeclaration(statement) ||
    ts.isClassDeclaration(statement) ||
    ts.isInterfaceDeclaration(statement) ||
    ts.isTypeAliasDeclaration(statement)
  return isNamed && statement.name !== undefined ? [[statement.name.text, statement]] : []
}

const namesOfVariable = ({ initializer, name }: ts.VariableDeclaration): ReadonlyArray<Named> => {
  if (ts.isIdentifier(name)) return [[name.text, initializer ?? name]]
  return name.elements.flatMap(
    (element): ReadonlyArray<Named> =>
      ts.isBindingElement(element) && ts.isIdentifier(element.name) ? [[element.name.text, element]] : []
  )
}

const isFunction = (node: ts.Node): boolean =>
  ts.isFunctionLike(node) ||
  (ts.isCallExpression(node) && /^(Effect\.fn|Function\.dual|dual|once)/.test(node.expression.getText()))

const membersOf = (node: ts.Node): ReadonlyArray<Member> => {
  if (ts.isInterfaceDeclaration(node)) return node.members.flatMap(memberOf)
  if (ts.isClassDeclaration(node)) {
    return (node.heritageClauses ?? []).flatMap(({ types }) =>
      types.flatMap(({ expression }) =>
        /^(Schema\.|TaggedError\b)/.test(expression.getText()) ? fieldsOf(expression) : []
      )
    )
  }
  return /^Schema\.(Struct|TaggedUnion|TaggedStruct)\(/.test(node.getText()) ? fieldsOf(node) : []
}

/** The properties of the object that a call of `Schema` is given. */
const fieldsOf = (node: ts.Node): ReadonlyArray<Member> => {
  if (!ts.isCallExpression(node)) return []
  const fields = node.arguments.find((argument) => ts.isObjectLiteralExpression(argument))
  return fields === undefined || !ts.isObjectLiteralExpression(fields)
    ? []
    : fields.properties.flatMap(memberOf)
}

const memberOf = (node: ts.TypeElement | ts.ObjectLiteralElementLike): ReadonlyArray<Member> =>
  node.name === undefined ? [] : [{ name: node.name.getText(), doc: docOf(node) }]

const docOf = (node: ts.Node): string | undefined => {
  const doc = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc).at(-1)
  return doc === undefined ? undefined : unstarred(doc.getText())
}

/** The text of a comment without its stars. */
const unstarred = (comment: string): string =>
  comment
    .replace(/^\/\*\*|\*\/$/g, "")
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, ""))
    .join("\n")
    .trim()

/** An example of a docstring. */
export interface Example {
  /** The module and the line. */
  readonly where: string
  readonly code: string
  /** The lines that it prints, as its comments `// => …` say, or none if it does not say. */
  readonly prints: ReadonlyArray<string>
}

/** The examples in the docstrings of a module, at its head, on its declarations and on their members. */
export const examplesOf = (file: string): ReadonlyArray<Example> => {
  const text = textOf(file)
  return [...text.matchAll(/\/\*\*[^]*?\*\//g)].flatMap((comment) =>
    [...comment[0].matchAll(/^ *\* ```ts\n([^]*?)^ *\* ```$/gm)].map(({ 1: block = "", index }): Example => {
      const code = unstarred(block)
      return {
        where: `${file}:${text.slice(0, comment.index + index).split("\n").length}`,
        code: `${code}\n`,
        prints: [...code.matchAll(/\/\/ => (.*)$/gm)].map(([, line = ""]) => line)
      }
    })
  )
}
