/**
 * Modules that export everything the package does, each by its inferred type: a compiler that emits declarations for them
 * has to name every type that a public signature mentions.
 */
import { rmSync, writeFileSync } from "node:fs"
import ts from "typescript-5.9"

const isType = (symbol) =>
  (symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) !== 0 && !isClass(symbol)
const isClass = (symbol) => (symbol.flags & ts.SymbolFlags.Class) !== 0
const isValue = (symbol) =>
  (symbol.flags & ts.SymbolFlags.Value) !== 0 && (symbol.flags & ts.SymbolFlags.Module) === 0
/** Whether `export type` exports it, so that an application can name it, and not make it. */
const isTypeOnly = ({ declarations = [] }) => declarations.some(ts.isTypeOnlyExportDeclaration)
const isNamespace = (symbol) => (symbol.flags & ts.SymbolFlags.Module) !== 0

/**
 * The source of such a module for each subpath of the package, for a project in `folder` that has the package installed.
 * Each imports one subpath only: a type of another one has to be named by a subpath of its own.
 */
export const sourcesOf = (folder, subpaths) => {
  const options = {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ESNext,
    strict: true,
    skipLibCheck: true,
    types: []
  }
  const file = `${folder}/subpaths.ts`
  writeFileSync(file, subpaths.map((name) => `import "${name}"`).join("\n"))
  const program = ts.createProgram([file], options)
  rmSync(file)
  const checker = program.getTypeChecker()
  return (program.getSourceFile(file)?.statements ?? []).map((statement, index) => {
    const subpath = subpaths[index] ?? ""
    const symbol = ts.isImportDeclaration(statement)
      ? checker.getSymbolAtLocation(statement.moduleSpecifier)
      : undefined
    if (symbol === undefined) throw new Error(`${subpath} cannot be resolved`)
    return [subpath, [`import * as m from "${subpath}"`, ...exportsOf(checker, symbol, "m")].join("\n")]
  })
}

/** A statement for each value, and for the members of each type, that a module exports. */
const exportsOf = (checker, module, path) =>
  checker.getExportsOfModule(module).flatMap((exported) => {
    const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const name = `${path}.${exported.name}`
    const id = name.replaceAll(".", "_")
    return [
      ...(isValue(symbol) && !isTypeOnly(exported) ? [`export const ${id} = ${name}`] : []),
      ...(isClass(symbol)
        ? membersOf(checker, symbol).map(
            (member) => `export const ${id}_${member} = (value: ${name}) => value.${member}`
          )
        : []),
      ...(isType(symbol)
        ? [`export const ${id}_ = (value: ${name}${argumentsOf(symbol)}) => ({ ...value })`]
        : []),
      ...(isNamespace(symbol) ? exportsOf(checker, symbol, name) : [])
    ]
  })

/** The public members of a class that it does not have from Effect or the language, but for the value of a service. */
const membersOf = (checker, symbol) =>
  checker
    .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    .filter(
      ({ declarations = [], name }) =>
        name === "Service" ||
        declarations.some((each) => each.getSourceFile().fileName.includes("/effect-agent/dist/"))
    )
    .filter(({ declarations = [] }) => !declarations.some(isPrivate))
    .map(({ name }) => name)
    .filter((name) => /^\w+$/.test(name))

const isPrivate = (declaration) =>
  (ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0

/** `<any, …>` for a type with parameters. */
const argumentsOf = ({ declarations = [] }) => {
  const counts = declarations.map((each) =>
    ts.isTypeAliasDeclaration(each) || ts.isInterfaceDeclaration(each)
      ? (each.typeParameters?.length ?? 0)
      : 0
  )
  const count = Math.max(0, ...counts)
  return count === 0 ? "" : `<${Array.from({ length: count }, () => "any").join(", ")}>`
}
