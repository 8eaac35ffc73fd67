/**
 * The death of this process at one of its writes to the database, before the statement or after it, when the database has done it and the
 * program does not know. It counts statements where they leave the program, so that no write of any layer is left out.
 */
import { Socket } from "node:net"
import { DatabaseSync, StatementSync } from "node:sqlite"

/** The write at which a process dies. */
export interface Point {
  /** The number of the write, from 1. With 0 the process lives. */
  readonly write: number
  readonly isAfter: boolean
}

const isWrite = (sql: string): boolean =>
  /\b(?:insert\s+into|delete\s+from|(?<!\bfor\s)update\s+["\w])|^\s*commit/i.test(sql) &&
  // Leases of workers are no journal, and come at their own times.
  !/cluster_(?:runners|locks)|migrations/i.test(sql)

let writes = 0
let point: Point = { write: 0, isAfter: false }

/** Counts from now on, and dies at a write. */
export const arm = (at: Point): void => {
  writes = 0
  point = at
}

/** The writes since the process was armed. */
export const count = (): number => writes

const die = (): void => void process.kill(process.pid, "SIGKILL")

/** Whether the process dies at the statement; before it, it is dead by now. */
const diesAfter = (sql: string): boolean => {
  if (!isWrite(sql) || ++writes !== point.write) return false
  if (!point.isAfter) die()
  return true
}

const watchSqlite = (): void => {
  const { exec } = DatabaseSync.prototype
  DatabaseSync.prototype.exec = function (sql) {
    const dies = diesAfter(sql)
    exec.call(this, sql)
    if (dies) die()
  }
  for (const name of ["run", "all", "get"] as const) {
    const own: (...args: Array<any>) => any = StatementSync.prototype[name]
    StatementSync.prototype[name] = function (this: StatementSync, ...args: Array<any>) {
      const dies = diesAfter(this.sourceSQL)
      const result = own.apply(this, args)
      if (dies) die()
      return result
    }
  }
}

/** The statements that a connection of PostgreSQL has prepared, by their names. */
const prepared = new WeakMap<Socket, Map<string, string>>()

/** The SQL that a frame of PostgreSQL's protocol runs. */
const statementsOf = (socket: Socket, frame: Uint8Array): ReadonlyArray<string> => {
  const names = prepared.get(socket) ?? new Map<string, string>()
  prepared.set(socket, names)
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.byteLength)
  const found: Array<string> = []
  for (let at = 0; at + 5 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1)
    const [first = "", second = ""] = bytes.toString("utf8", at + 5, at + 1 + length).split("\0", 2)
    const type = String.fromCharCode(bytes[at] ?? 0)
    if (!/[A-Za-z]/.test(type)) break
    if (type === "P") names.set(first, second)
    if (type === "B") found.push(names.get(second) ?? "")
    if (type === "Q") found.push(first)
    at += 1 + length
  }
  return found
}

/** Whether a chunk ends with ReadyForQuery: the database has done all that it was sent. */
const isReady = (chunk: unknown): boolean =>
  chunk instanceof Uint8Array && chunk.length >= 6 && chunk.at(-6) === 0x5a && chunk.at(-2) === 5

const watchPostgres = (port: number): void => {
  const { write } = Socket.prototype
  Socket.prototype.write = function (this: Socket, ...args: Array<any>): boolean {
    const [frame] = args
    if (this.remotePort === port && frame instanceof Uint8Array) {
      const dies = statementsOf(this, frame).filter((sql) => diesAfter(sql)).length > 0
      if (dies) {
        const { emit } = this
        this.emit = function (this: Socket, ...event: Array<any>): boolean {
          if (event[0] === "data" && isReady(event[1])) die()
          return Reflect.apply(emit, this, event)
        }
      }
    }
    return Reflect.apply(write, this, args)
  }
}

/** Watches the statements to a database. */
export const watch = (url: string): void => {
  if (url.startsWith("sqlite:")) watchSqlite()
  else watchPostgres(Number(new URL(url).port))
}
