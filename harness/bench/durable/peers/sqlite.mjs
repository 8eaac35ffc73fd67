// The part of better-sqlite3 that the checkpointer of LangGraph uses, over node:sqlite, with the settings that better-sqlite3 is built with.
import { DatabaseSync } from "node:sqlite"

const value = (given) => (given === undefined ? null : given)

export default class Database {
  constructor(path) {
    this.database = new DatabaseSync(path)
    this.database.exec("PRAGMA synchronous = NORMAL")
  }

  pragma(text) {
    this.database.exec(`PRAGMA ${text}`)
  }

  exec(text) {
    this.database.exec(text)
  }

  prepare(text) {
    const statement = this.database.prepare(text)
    const of =
      (name) =>
      (...args) =>
        statement[name](...args.map(value))
    return { run: of("run"), get: of("get"), all: of("all") }
  }

  transaction(use) {
    return (...args) => {
      this.database.exec("BEGIN")
      try {
        const result = use(...args)
        this.database.exec("COMMIT")
        return result
      } catch (error) {
        this.database.exec("ROLLBACK")
        throw error
      }
    }
  }
}
