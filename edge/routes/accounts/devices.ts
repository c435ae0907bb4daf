import { createLazy } from '../../../tasks/platform/lazy.ts'

/** Describes devices by their user agent. */

export const loadBowser = createLazy(() => import('bowser'))

// Bounds the input of Bowser's regular expressions. Sessions store the same number of characters.
const MAX_USER_AGENT_CHARACTERS = 300
const SAFE_DESCRIPTION = /^[\p{L}\p{N} .()_-]{1,80}$/u

/** Returns the browser and operating system, such as `Firefox 132 on Linux`; null if the user agent is unknown. */
export async function describeDevice(userAgent: string): Promise<string | null> {
  if (userAgent === '') return null
  const { default: Bowser } = await loadBowser()
  const { browser, os } = Bowser.parse(userAgent.slice(0, MAX_USER_AGENT_CHARACTERS))
  const name = [browser.name, /^\d+/.exec(browser.version ?? '')?.[0]].filter(Boolean).join(' ')
  const description = [name, os.name].filter(Boolean).join(' on ')
  return SAFE_DESCRIPTION.test(description) ? description : null
}
