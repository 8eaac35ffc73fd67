/** The commands `/login` and `/logout`: keys of vendors, which are never shown. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Credentials from "../agent/Credentials.ts"
import * as ModelChoice from "../agent/ModelChoice.ts"
import * as Panels from "./Panel.ts"
import type { Session } from "./Session.ts"

const stateOf = ({ key, vendor }: Credentials.Row): string => {
  if (key === undefined) return `${vendor} · no key`
  return key === "file" ? `${vendor} · key entered` : `${vendor} · key in ${key.variable}`
}

/** Lists the vendors, or reads the key of one without an echo. */
export const login = Effect.fnUntraced(function* (session: Session, vendor: string) {
  const all = yield* Credentials.list(process.env)
  if (vendor === "") {
    return session.show(
      Panels.list({
        title: "Key of which vendor?",
        items: all.map((one) => ({ value: one.vendor, label: stateOf(one) })),
        pick: (name) => {
          session.hide()
          session.do(login(session, name))
        },
        cancel: () => session.hide()
      })
    )
  }
  if (!all.some((one) => one.vendor === vendor)) {
    // The failure names the nearest one.
    return yield* Credentials.set(vendor, Redacted.make("-"), process.env)
  }
  session.show(
    Panels.secret({
      title: `Key of ${vendor}`,
      enter: (key) => {
        session.hide()
        session.do(keep(session, vendor, key))
      },
      cancel: () => session.hide()
    })
  )
})

const keep = Effect.fnUntraced(function* (session: Session, vendor: string, key: string) {
  yield* Credentials.set(vendor, Redacted.make(key), process.env)
  session.say(`Key of ${vendor} kept.`)
  if (session.model !== "local/rules" || session.place.url !== undefined) return
  const { model } = yield* ModelChoice.choose({ ...session.settings, model: Option.none() }, process.env)
  yield* session.setModel(model)
  session.say(`Model: ${model}`)
})

/** Forgets the key of a vendor. */
export const logout = Effect.fnUntraced(function* (session: Session, vendor: string) {
  if (vendor === "") return session.say("Give a vendor: /logout VENDOR")
  const isRemoved = yield* Credentials.remove(vendor, process.env)
  const left = (yield* Credentials.list(process.env)).find((one) => one.vendor === vendor)
  session.say(isRemoved ? `Key of ${vendor} forgotten.` : `No key of ${vendor} was entered.`)
  if (left?.key !== undefined) session.say(stateOf(left))
})
