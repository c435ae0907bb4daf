import { Parser } from 'htmlparser2'

/** HTML and XML as events. The only importer of htmlparser2. */

/** What markup consists of, in its order; `at` is a position in it, in characters. */
export interface MarkupEvents {
  open?(name: string, attributes: Readonly<Record<string, string>>, at: number): void
  close?(name: string, at: number): void
  /** A piece of text, without references to characters. */
  text?(data: string, at: number): void
}

// The parser scans all open elements at each tag: what is deeper is not a real document, and is parsed as if begun anew.
const DEEPEST = 1000

/** Goes through markup, whatever it is: nothing throws but the events. XML has its names as written, and expands no entities of its own. */
export function readMarkup(markup: string, language: 'html' | 'xml', events: MarkupEvents): void {
  for (let from = 0; from < markup.length; ) from = parsed(markup, from, language === 'xml', events)
}

/** Parses from a position on; returns where it stopped. */
function parsed(markup: string, from: number, xmlMode: boolean, events: MarkupEvents): number {
  let depth = 0
  let stopped = false
  const parser: Parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (stopped) return
        events.open?.(name, attributes, from + parser.startIndex)
        if (++depth <= DEEPEST) return
        stopped = true
        parser.pause()
      },
      onclosetag: (name) => {
        depth--
        if (!stopped) events.close?.(name, from + parser.startIndex)
      },
      ontext: (data) => {
        if (!stopped) events.text?.(data, from + parser.startIndex)
      },
    },
    // Also in HTML: books and pages that were written as XML have an empty title or script, which would go on to their end.
    { xmlMode, recognizeSelfClosing: true },
  )
  parser.write(from === 0 ? markup : markup.slice(from))
  if (stopped) return from + parser.endIndex + 1
  parser.end()
  return markup.length
}
