import { setTimeout as delay } from 'node:timers/promises'

/** Looks until a condition holds; the value it held with. Fails with `what` after the deadline in ms. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  deadlineMs = 10_000,
): Promise<Exclude<T, null | undefined | false>> {
  const end = Date.now() + deadlineMs
  for (;;) {
    const value = await condition()
    if (value !== null && value !== undefined && value !== false)
      return value as Exclude<T, null | undefined | false>
    if (Date.now() > end) throw new Error(`Not within ${deadlineMs} ms: ${what}`)
    await delay(10)
  }
}
