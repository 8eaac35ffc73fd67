/**
 * Another process that puts a link to the outside in the place of the folder `d` of a root, and `d` back, as fast as it
 * can. Says how often, now and then, on stdout.
 */
import { renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs"

const [root = "", outside = ""] = process.argv.slice(2)
const [d, kept] = [`${root}/d`, `${root}/kept`]

const attempt = (action: () => void, otherwise: () => void): void => {
  try {
    action()
  } catch {
    otherwise()
  }
}
// A write may make the folder anew in between; that one is taken away again.
const clear = (): void => attempt(() => rmSync(d, { recursive: true, force: true }), clear)
const pause = (): void => {
  for (let wait = Math.random() ** 3 * 1e6; wait > 0; wait--);
}

for (let swaps = 1; ; swaps++) {
  attempt(() => renameSync(d, kept), clear)
  attempt(() => symlinkSync(outside, d), clear)
  pause()
  attempt(() => unlinkSync(d), clear)
  for (let done = false; !done; ) {
    attempt(() => {
      renameSync(kept, d)
      done = true
    }, clear)
  }
  pause()
  if (swaps % 10 === 0) process.stdout.write(".")
}
