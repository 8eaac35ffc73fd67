/** A page may have the view: it is small, and loads no library. */
import { assert, describe, it } from "@effect/vitest"
import { build } from "esbuild"
import { join } from "node:path"
import { gzipSync } from "node:zlib"

describe("the view as a page loads it", () => {
  it("has at most 6 KiB, and nothing of Effect", async () => {
    const { metafile, outputFiles } = await build({
      entryPoints: [join(import.meta.dirname, "../../src/view/index.ts")],
      bundle: true,
      minify: true,
      format: "esm",
      write: false,
      metafile: true
    })
    assert.deepStrictEqual(
      Object.keys(metafile.inputs).filter((file) => file.includes("node_modules")),
      []
    )
    const [page] = outputFiles
    assert.isAtMost(gzipSync(page?.contents ?? "", { level: 9 }).length, 6 * 1024)
  })
})
