/**
 * What a program has sent to its terminal, frame by frame: the bytes, and the lines that they changed.
 */
import headless from "@xterm/headless"

const end = "\u001b[?2026l"

interface Sums {
  /** The bytes of all frames. */
  readonly written: number
  /** The bytes of the text of the lines that each frame changed. */
  readonly changed: number
  readonly frames: number
}

/** Plays bytes on an emulator, and adds up those behind `from`. */
export const sums = async (bytes: string, from: number, cols: number, rows: number): Promise<Sums> => {
  const emulator = new headless.Terminal({ cols, rows, scrollback: 20_000, allowProposedApi: true })
  const write = (text: string) => new Promise<void>((resolve) => emulator.write(text, resolve))
  await write(bytes.slice(0, from))
  let written = 0
  let changed = 0
  let frames = 0
  let before = linesOf(emulator, 0)
  for (const frame of bytes.slice(from).split(end).slice(0, -1)) {
    const top = emulator.buffer.active.baseY
    await write(frame + end)
    const after = linesOf(emulator, top)
    for (const [row, text] of after) if (before.get(row) !== text) changed += Buffer.byteLength(text)
    written += Buffer.byteLength(frame + end)
    frames++
    before = after
  }
  emulator.dispose()
  return { written, changed, frames }
}

/** The lines from a row on, by their place from the first one. */
const linesOf = (emulator: InstanceType<typeof headless.Terminal>, from: number): Map<number, string> => {
  const { active } = emulator.buffer
  const lines = new Map<number, string>()
  for (let row = from; row < active.length; row++)
    lines.set(row, active.getLine(row)?.translateToString(true) ?? "")
  return lines
}
