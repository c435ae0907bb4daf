// Quotas of the account. For admins what the service takes: tables with their growth, and what was spent.

import { call } from './api.js'
import { sparkline } from './chart.js'
import { h, panel, table, tiles } from './dom.js'
import { bytes, change, count, days, dollars } from './format.js'
import { makeQuotas } from './quotas.js'
import { makeSpending } from './spending.js'

export async function show(view, { account }) {
  document.title = 'Usage · Millrace'
  const title = h('h1', { class: 'hidden' }, 'Usage')
  const quotas = await makeQuotas()
  view.replaceChildren(title, ...(quotas === null ? [] : [quotas]))
  if (account.role !== 'admin') return
  const figures = tiles([
    ['Stored', 'in tables'],
    ['Growth', 'in 7 days'],
    ['Old', 'would go now'],
    ['Models', 'in the days below'],
    ['Messages', 'sent in them'],
  ])
  const spending = makeSpending((cost, sent) => {
    figures.set('Models', dollars(cost))
    figures.set('Messages', count(sent))
  })
  const [taken] = await Promise.all([call('GET', '/api/v1/system/tables'), spending.load()])
  const list = makeTables(taken.tables)
  figures.set('Stored', bytes(taken.bytes))
  figures.set('Growth', list.grown === null ? '–' : change(list.grown))
  figures.set('Old', bytes(list.old))
  title.after(figures.node, spending.node, list.node)
}

function makeTables(tables) {
  const { node, body, row } = table('Tables', [
    ['Table', 'name'],
    ['Rows, about', 'number'],
    ['Size', 'number'],
    ['In 30 days', 'chart small'],
    ['Today', 'number'],
    ['7 days', 'number'],
    ['30 days', 'number'],
    ['Oldest day', 'number'],
    ['Kept for', 'number'],
    ['Would go now', 'number'],
  ])
  body.append(
    ...tables.map(({ name, rows, bytes: size, growth, bytes_by_day, oldest_day, retention }) => {
      const { node: trend, draw } = sparkline()
      const values = bytes_by_day
      draw(
        [
          { values, kind: 'line' },
        ],
        `Size of ${name} in the last 30 days`,
      )
      return row(
        h('strong', {}, name),
        quiet(count(rows)),
        bytes(size),
        trend,
        grown(growth.day),
        grown(growth.week),
        grown(growth.month),
        quiet(oldest_day ?? '–'),
        h('span', { title: retention?.setting }, quiet(kept(retention))),
        quiet(going(retention)),
      )
    }),
  )
  // Focusable, so that it can be scrolled by the keyboard.
  const scrolled = h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Tables' }, node)
  const weeks = tables.flatMap(({ growth }) => growth.week?.bytes ?? [])
  const note =
    'Measured every hour. What would go is deleted once an hour; PostgreSQL then uses its space again, and returns it to the system only where a whole month goes.'
  return {
    node: panel('Tables', {}, scrolled, h('p', { class: 'soft' }, note)),
    grown: weeks.length === 0 ? null : weeks.reduce((sum, n) => sum + n, 0),
    old: tables.reduce((sum, { retention }) => sum + (retention?.bytes ?? 0), 0),
  }
}

/** What says nothing is not to catch the eye. */
const quiet = (text) => h('span', { class: { 0: 'zero', '–': 'zero absent' }[text] }, text)

const grown = (growth) => quiet(growth === null ? '–' : change(growth.bytes))

function kept(retention) {
  if (retention === null) return '–'
  return retention.days === null ? 'ever' : days(retention.days)
}

function going(retention) {
  if (retention === null || retention.rows === null) return '–'
  return retention.rows === 0 ? '0' : `${count(retention.rows)} rows, ${bytes(retention.bytes)}`
}
