/** What a user agent says that it is. */

// Its expressions get no longer text, whatever a client sends; the session keeps as much.
const MAX_CHARACTERS = 300
const WORDS = /^[\p{L}\p{N} .()_-]{1,80}$/u

/** Browser and system in words, such as `Firefox 132 on Linux`; null for what is no known browser. */
export async function deviceOf(userAgent: string): Promise<string | null> {
  if (userAgent === '') return null
  const { default: Bowser } = await import('bowser')
  const { browser, os } = Bowser.parse(userAgent.slice(0, MAX_CHARACTERS))
  const name = [browser.name, /^\d+/.exec(browser.version ?? '')?.[0]].filter(Boolean).join(' ')
  const words = [name, os.name].filter(Boolean).join(' on ')
  return WORDS.test(words) ? words : null
}
