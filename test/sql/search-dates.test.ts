import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../database.ts'

/** A search knows the names of months in all languages of ICU whose names have no digits. */

const { query } = await createTestDatabase()

const LANGUAGES =
  'en de fr es it nl pt ca gl eu ro pl cs sk sl hr sr bs mk bg hu fi et lv lt sv da nb is ru uk be el tr az kk uz ka hy he ar ar-SY fa hi bn ta te mr gu kn ml pa ur th lo km my id ms fil sw af sq ga cy mt mn ne si am'.split(
    ' ',
  )

test('dates with the name of a month are dates in every language', async () => {
  const dates: { typed: string; date: string }[] = []
  for (const language of LANGUAGES)
    for (const style of ['long', 'short'] as const)
      for (let month = 0; month < 12; month++) {
        const day = new Date(Date.UTC(2026, month, 14))
        const format = { day: 'numeric', month: style, year: 'numeric', timeZone: 'UTC' } as const
        const parts = new Intl.DateTimeFormat(`${language}-u-ca-gregory-nu-latn`, format).formatToParts(day)
        const name = parts.find(({ type }) => type === 'month')!.value
        if (!/\p{N}/u.test(name))
          dates.push({ typed: `14 ${name} 2026`, date: day.toISOString().slice(0, 10) })
      }
  assert.ok(dates.length > 1200, `${dates.length}`)
  const missed = await query(
    `select typed from unnest($1::text[], $2::date[]) given (typed, day) where not day = any(search_dates(typed))`,
    [dates.map(({ typed }) => typed), dates.map(({ date }) => date)],
  )
  assert.deepEqual(missed, [])
})

test('a date is found by every date that it may mean, and by no other', async () => {
  const rows = await query(
    `select typed, search_dates(typed)::text[] as days from unnest(
       array['04/05/2026', '2026-02-30', '31.04.2026', '14 Mill 2026', '1 2 3', 'March 2026', '99999999', '14.03.70']) typed`,
  )
  assert.deepEqual(
    rows.map(({ days }) => days),
    [['2026-05-04', '2026-04-05'], [], [], [], [], [], [], ['1970-03-14']],
  )
})
