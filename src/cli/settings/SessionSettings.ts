/** The settings of the interactive session. */
import * as Setting from "./Setting.ts"

export const settings = {
  interactive: Setting.toggle({
    name: "interactive",
    alias: "i",
    description: "Open a session, whose first prompt is the text",
    isKept: false
  }),
  plain: Setting.toggle({
    name: "plain",
    description:
      "Lines alone in the session: no cursor movement, colours or animation. On a pipe each line is a prompt"
  }),
  enter: Setting.choice({
    name: "enter",
    words: ["steer", "queue"] as const,
    description: "What Enter does in the session while it works; Alt-Enter does the other. Default: steer"
  }),
  notify: Setting.choice({
    name: "notify",
    words: ["off", "bell", "osc9"] as const,
    description: "How the session calls the person: not, by a bell, or by OSC 9. Default: bell"
  }),
  theme: Setting.choice({
    name: "theme",
    words: ["auto", "none"] as const,
    description: "Colours of the session. Default: auto"
  }),
  title: Setting.toggle({
    name: "title",
    isNegated: true,
    description: "Set the title of the terminal to the name of the session. Default: true"
  }),
  motion: Setting.toggle({
    name: "motion",
    isNegated: true,
    description: "Let the clock of the session tick. Default: true"
  })
}
