import { Parser } from 'htmlparser2'

/** Reads HTML and XML as events. No other module imports `htmlparser2`. */

/** Callbacks for elements and text, in document order; `at` is the position in the markup, in characters. */
export interface MarkupEvents {
  open?(name: string, attributes: Readonly<Record<string, string>>, at: number): void
  close?(name: string, at: number): void
  /** A piece of text with its character references decoded. */
  text?(data: string, at: number): void
}

// More levels than any real document has. The parser scans all open elements at each tag, so at this depth parsing
// restarts without open elements.
const MAX_DEPTH = 1000

/**
 * Reads any markup, well-formed or not. Throws only errors that `events` throws. For XML, keeps the case of names and
 * does not expand custom entities.
 */
export function parseMarkup(markup: string, language: 'html' | 'xml', events: MarkupEvents): void {
  for (let from = 0; from < markup.length; ) from = parseFrom(markup, from, language === 'xml', events)
}

/** Parses from a position; returns the position where it stopped. */
function parseFrom(markup: string, from: number, xmlMode: boolean, events: MarkupEvents): number {
  let depth = 0
  let stopped = false
  const parser: Parser = new Parser(
    {
      onopentag: (name, attributes) => {
        if (stopped) return
        events.open?.(name, attributes, from + parser.startIndex)
        if (++depth <= MAX_DEPTH) return
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
    // Needed for HTML too: in markup written as XML, an empty title or script would otherwise extend to the end.
    { xmlMode, recognizeSelfClosing: true },
  )
  parser.write(from === 0 ? markup : markup.slice(from))
  if (stopped) return from + parser.endIndex + 1
  parser.end()
  return markup.length
}
