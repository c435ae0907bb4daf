import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseDate } from '../../tasks/blog/dates.ts'
import { createRunOptions } from '../runs.ts'

const AT = '2020-01-02T03:04:05.000Z'
const DAY = '2020-01-02T00:00:00.000Z'

const read: Readonly<Record<string, readonly string[]>> = {
  [DAY]: [
    '2020-01-02',
    '2020-1-2',
    ' 2020-01-02 ',
    '2020/01/02',
    '2020.01.02',
    '20200102',
    '2.1.2020',
    '02-01-2020',
    '1/2/2020',
    'Jan 2, 2020',
    'January 2nd, 2020',
    'Jan. 2 2020',
    '2 January 2020',
    '2nd of January, 2020',
    '02-Jan-2020',
    'Thursday, 2 January 2020',
    'Thu Jan 2 2020',
    '2020 Jan 2',
  ],
  [AT]: [
    '2020-01-02 03:04:05',
    '2020-01-02T03:04:05',
    '2020-01-02T03:04:05Z',
    '2020-01-02t03:04:05z',
    '2020-01-02 03:04:05 UTC',
    '2020-01-02 03:04:05 +0000 UTC',
    '2020-01-02 03:04:05 +0000 UTC m=+0.000000001',
    '2020-01-01 20:04:05 -0700 MST',
    '2020-01-02 06:04:05 +0300 +03',
    'Thursday, 02-Jan-20 03:04:05 UTC',
    '02 Jan 20 03:04:05 +0000',
    'Thu Jan 02 03:04:05 +0000 2020',
    '2020-1-2 3:4:5',
    '20200102030405',
    '2020-01-02T03:04:05Z[UTC]',
    '2020年1月2日 03:04:05',
    '2020-01-02 03:04:05 GMT',
    '2020-01-02 03:04:05 +0000',
    '2020-01-02T03:04:05+00:00',
    '2020-01-02T05:04:05+02:00',
    '2020-01-02T05:04:05+02',
    '2020-01-02 00:04:05 -0300',
    '2020-01-02 00:04:05 -03:00',
    '2020-01-02 08:34:05+05:30',
    '2020-01-02 03:04:05 AM',
    '2020-01-02, 3:04:05 a.m.',
    '2020-01-01 22:04:05 EST',
    '2020-01-02 04:04:05 CET',
    '2020-01-02 04:04:05 Europe/Berlin',
    '2020-01-02T04:04:05+01:00[Europe/Berlin]',
    '2020-01-02 11:04:05 UTC+8',
    'Thu, 02 Jan 2020 03:04:05 GMT',
    'Thu, 2 Jan 2020 03:04:05 +0000',
    'Thu Jan  2 03:04:05 2020',
    'Thu Jan  2 03:04:05 UTC 2020',
    'Thu Jan 02 2020 04:04:05 GMT+0100 (Central European Standard Time)',
    'January 2, 2020 at 3:04:05 AM',
    '20200102T030405Z',
    '1577934245',
    '1577934245000',
  ],
  '2020-01-02T15:04:00.000Z': [
    '2020-01-02 15:04',
    '2020-01-02 3:04 PM',
    'January 2, 2020 3:04pm',
    '2020-01-02 15:04 \u22120000',
  ],
  '2020-01-02T03:04:05.123Z': [
    '2020-01-02T03:04:05.123Z',
    '2020-01-02 03:04:05.123456789',
    '2020-01-02 03:04:05,123',
  ],
  '2020-07-02T07:04:00.000Z': ['2020-07-02 03:04 America/New_York', '2020-07-02 03:04 EDT'],
  '2020-02-13T00:00:00.000Z': ['13/2/2020'],
  '2020-01-01T00:00:00.000Z': ['2020', '2020-01', 'January 2020'],
  '2020-02-29T00:00:00.000Z': ['2020-02-29'],
  '0001-01-01T00:00:00.000Z': ['0001-01-01'],
  '9999-12-31T23:59:59.999Z': ['9999-12-31T23:59:59.999Z'],
}

for (const [instant, texts] of Object.entries(read)) {
  for (const text of texts) test(`${text} is ${instant}`, () => assert.equal(parseDate(text), instant))
}

for (const text of [
  '',
  'soon',
  'not a date',
  '2020-02-30',
  '2019-02-29',
  '2020-13-01',
  '2020-00-01',
  '2020-01-32',
  '2020-01-02 25:00',
  '2020-01-02 10:60',
  '2020-01-02 13:00 PM',
  '2020-01-02 10:00 XYZ',
  '2020-01-02 10:00 Nowhere/City',
  '2020-01-02 10:00 +25:00',
  '0000-01-01',
  '0001-01-01T00:00:00+01:00',
  '9999-12-31T23:59:59-01:00',
  '10000-01-01',
  '{{ date }}',
  '2020-01-02-hello',
]) {
  test(`${JSON.stringify(text)} is no date`, () => assert.equal(parseDate(text), null))
}

test('reads every date that it writes, and accepts any input without failing', () => {
  const dates = fc.date({
    min: new Date('0001-01-02T00:00:00Z'),
    max: new Date('9999-12-30T00:00:00Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(dates, (date) => {
      assert.equal(parseDate(date.toISOString()), date.toISOString())
      const seconds = new Date(Math.floor(date.getTime() / 1000) * 1000).toISOString()
      if (date.getUTCFullYear() >= 1000) assert.equal(parseDate(date.toUTCString()), seconds)
    }),
    createRunOptions(),
  )
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const date = parseDate(text)
      assert.ok(date === null || /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(date))
    }),
    createRunOptions(),
  )
})
