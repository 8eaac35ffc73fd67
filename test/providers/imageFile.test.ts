import { assert, describe, it } from "@effect/vitest"
import * as ImageFile from "../../src/media/ImageFile.ts"
import * as Images from "./images.ts"

const base64 = (bytes: ArrayLike<number> | string) =>
  (typeof bytes === "string" ? Buffer.from(bytes, "latin1") : Buffer.from(Uint8Array.from(bytes))).toString(
    "base64"
  )

describe("an image", () => {
  for (const [name, image] of Object.entries(Images.written)) {
    const type = name.toLowerCase().replace(/^.*(?=webp|jpeg)/, "")

    it(`of the kind ${name} says its type and its size, with bytes behind its end too`, () => {
      const whole = { mediaType: `image/${type}`, width: 7, height: 5 }
      assert.deepStrictEqual(ImageFile.read(image), whole)
      assert.deepStrictEqual(ImageFile.read(base64(`${atob(image)}more`)), whole)
    })

    it(`of the kind ${name} is broken wherever it is cut`, () => {
      const bytes = Buffer.from(image, "base64")
      for (let length = 12; length < bytes.length; length++) {
        const start = bytes.subarray(0, length)
        assert.property(ImageFile.read(base64(start)), "fault", `${length} bytes`)
      }
    })
  }

  it("without pixels is broken", () => {
    assert.property(ImageFile.read(Images.png(0, 5)), "fault")
  })

  it("of another type, and data that are not base64, are not known", () => {
    for (const data of ["", "AAAA", "ä", base64("BM6 a bitmap"), base64("<svg/>")])
      assert.isUndefined(ImageFile.read(data))
  })
})
