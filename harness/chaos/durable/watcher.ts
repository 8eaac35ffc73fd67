/** A client that watches a run over whatever happens to the workers, and remembers all that it saw. */
import { open, sleep } from "./http.ts"

export interface Seen {
  readonly position: number
  readonly tag: string
  /** The event as JSON. */
  readonly text: string
  /** Milliseconds since the epoch. */
  readonly at: number
}

export class Watcher {
  readonly runId: string
  readonly seen: Array<Seen> = []
  readonly faults: Array<string> = []
  isOver = false
  private isLeft = false
  private readonly urlOf: () => string | undefined
  private response: { destroy: () => void } | undefined

  constructor(runId: string, urlOf: () => string | undefined) {
    this.runId = runId
    this.urlOf = urlOf
  }

  private get last(): number {
    return this.seen.at(-1)?.position ?? 0
  }

  /** Breaks the connection: the watcher comes back. */
  cut(): void {
    this.response?.destroy()
  }

  /** Watches no more. */
  leave(): void {
    this.isLeft = true
    this.cut()
  }

  /** Watches until the run has ended, or the watcher left. */
  async watch(): Promise<void> {
    while (!this.isOver && !this.isLeft) {
      const url = this.urlOf()
      if (url !== undefined) await this.connect(url).catch(() => {})
      if (!this.isOver && !this.isLeft) await sleep(10)
    }
  }

  private async connect(url: string): Promise<void> {
    const path = `/runs/${this.runId}/events`
    const response = await open(url, { path, headers: { "last-event-id": String(this.last) } })
    this.response = response
    const status = response.statusCode ?? 0
    if (status === 204) this.faults.push(`nothing is left behind ${this.last}, and the run has not ended`)
    if (status === 204 || status === 404) {
      if (status === 404) this.faults.push("the run is not known")
      this.isOver = true
    }
    if (status !== 200) return void response.resume()
    response.setEncoding("utf8")
    let text = ""
    for await (const chunk of response) {
      text += chunk
      const frames = text.split("\n\n")
      text = frames.pop() ?? ""
      for (const frame of frames) this.take(frame)
    }
  }

  private take(frame: string): void {
    if (frame.startsWith(":")) return
    const parts = /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/s.exec(frame)
    if (parts === null) return void this.faults.push(`a frame that is none: ${frame.slice(0, 80)}`)
    const [, position = "", tag = "", text = ""] = parts
    if (Number(position) <= this.last) this.faults.push(`position ${position} after ${this.last}`)
    if (this.isOver) this.faults.push(`${tag} after the end`)
    this.seen.push({ position: Number(position), tag, text, at: Date.now() })
    if (tag === "RunEnd") this.isOver = true
  }
}
