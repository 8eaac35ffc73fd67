import { build, type BuildOptions, type Metafile } from "esbuild"
import { gzipSync } from "node:zlib"

/** The files that come with an output at once. */
export const closure = (
  { outputs }: Metafile,
  output: string,
  found = new Set<string>()
): ReadonlySet<string> => {
  if (found.has(output)) return found
  found.add(output)
  for (const { kind, path } of outputs[output]?.imports ?? []) {
    if (kind === "import-statement" && path in outputs) closure({ inputs: {}, outputs }, path, found)
  }
  return found
}

/** The files that an application loads at once: their size in kB, and the modules of which they have code. */
export interface Bundle {
  readonly size: number
  readonly modules: ReadonlyArray<string>
}

/** Bundles an application, and leaves out of account what it loads later. */
export const bundle = async (
  contents: string,
  folder: string,
  options: Pick<BuildOptions, "conditions" | "packages" | "platform"> = {}
): Promise<Bundle> => {
  const { metafile, outputFiles } = await build({
    stdin: { contents, resolveDir: folder, loader: "ts" },
    absWorkingDir: folder,
    external: ["zod"],
    bundle: true,
    splitting: true,
    outdir: "out",
    entryNames: "entry",
    minify: true,
    write: false,
    metafile: true,
    format: "esm",
    logLevel: "error",
    ...options
  })
  const files = [...closure(metafile, "out/entry.js")]
  const sizes = files.map(
    (file) => gzipSync(outputFiles.find(({ path }) => path.endsWith(file))?.contents ?? "").length
  )
  const modules = files.flatMap((file) =>
    Object.entries(metafile.outputs[file]?.inputs ?? {}).flatMap(([module, { bytesInOutput }]) =>
      bytesInOutput > 0 ? [module] : []
    )
  )
  return { size: sizes.reduce((sum, size) => sum + size, 0) / 1024, modules: modules.sort() }
}
