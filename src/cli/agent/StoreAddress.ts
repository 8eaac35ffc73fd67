/** The places that sessions can be kept in: files, an SQLite database, or a PostgreSQL database. */
import * as Option from "effect/Option"

export type StoreAddress =
  | { readonly _tag: "Files"; readonly directory: string }
  | { readonly _tag: "Sqlite"; readonly filename: string }
  | { readonly _tag: "Postgres"; readonly url: string }

export const expected = "sqlite:FILE, postgres://USER@HOST/DATABASE, or a folder"

/** Reads `sqlite:FILE`, `postgres://…`, `jsonl:DIR`, or the path of a folder or of a file that ends as SQLite databases do. */
export const read = (text: string): Option.Option<StoreAddress> => {
  const [, scheme, rest = ""] = /^([a-z][a-z+]+):(.*)$/s.exec(text) ?? []
  if (text.trim() === "") return Option.none()
  if (scheme === undefined)
    return Option.some(
      /\.(?:db|sqlite3?)$/.test(text)
        ? { _tag: "Sqlite", filename: text }
        : { _tag: "Files", directory: text }
    )
  if (scheme === "postgres" || scheme === "postgresql")
    return URL.canParse(text) ? Option.some({ _tag: "Postgres", url: text }) : Option.none()
  if (rest.trim() === "") return Option.none()
  if (scheme === "sqlite") return Option.some({ _tag: "Sqlite", filename: rest })
  return scheme === "jsonl" ? Option.some({ _tag: "Files", directory: rest }) : Option.none()
}

/** A text without the password of an address in it. */
export const withoutPassword = (text: string): string => text.replace(/(\/\/[^/\s:@]*:)[^/\s@]*@/, "$1…@")
