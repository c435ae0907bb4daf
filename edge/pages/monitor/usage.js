// Page of the account's quotas. For admins it also shows the size and growth of tables, model costs and sent messages.

import { call } from './api.js'
import { sparkline } from './chart.js'
import { h, panel, table, tiles } from './dom.js'
import { formatBytes, formatByteChange, formatCount, formatDays, formatDollars } from './format.js'
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
    ['Expired', 'beyond retention'],
    ['Model costs', 'in the period below'],
    ['Messages', 'sent in that period'],
  ])
  const spending = makeSpending((cost, sent) => {
    figures.set('Model costs', formatDollars(cost))
    figures.set('Messages', formatCount(sent))
  })
  const [storage] = await Promise.all([call('GET', '/api/v1/system/tables'), spending.load()])
  const list = makeTables(storage.tables)
  figures.set('Stored', formatBytes(storage.bytes))
  figures.set('Growth', list.growth === null ? '–' : formatByteChange(list.growth))
  figures.set('Expired', formatBytes(list.expired))
  title.after(figures.node, spending.node, list.node)
}

function makeTables(tables) {
  const { node, body, row } = table('Tables', [
    ['Table', 'name'],
    ['Rows (estimate)', 'number'],
    ['Size', 'number'],
    ['Last 30 days', 'chart small'],
    ['Growth today', 'number'],
    ['Growth, 7 days', 'number'],
    ['Growth, 30 days', 'number'],
    ['Oldest day', 'number'],
    ['Retention', 'number'],
    ['Expired', 'number'],
  ])
  body.append(
    ...tables.map(({ name, rows, bytes: size, growth, bytes_by_day, oldest_day, retention }) => {
      const { node: trend, draw } = sparkline()
      draw([{ values: bytes_by_day, kind: 'line' }], `Size of ${name} in the last 30 days`)
      return row(
        h('strong', {}, name),
        muted(formatCount(rows)),
        formatBytes(size),
        trend,
        growthCell(growth.day),
        growthCell(growth.week),
        growthCell(growth.month),
        muted(oldest_day ?? '–'),
        h('span', { title: retention?.setting }, muted(retentionText(retention))),
        muted(expiredText(retention)),
      )
    }),
  )
  // Focusable, so that the keyboard can scroll it.
  const scrolled = h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Tables' }, node)
  const weeks = tables.flatMap(({ growth }) => growth.week?.bytes ?? [])
  const note =
    'Sizes are measured hourly. Expired rows are pruned hourly. PostgreSQL reuses their space; only pruning a whole month returns space to the system.'
  return {
    node: panel('Tables', {}, scrolled, h('p', { class: 'soft' }, note)),
    growth: weeks.length === 0 ? null : weeks.reduce((sum, n) => sum + n, 0),
    expired: tables.reduce((sum, { retention }) => sum + (retention?.bytes ?? 0), 0),
  }
}

/** Mutes a text that is zero or a dash. */
const muted = (text) => h('span', { class: { 0: 'zero', '–': 'zero absent' }[text] }, text)

const growthCell = (growth) => muted(growth === null ? '–' : formatByteChange(growth.bytes))

function retentionText(retention) {
  if (retention === null) return '–'
  return retention.days === null ? 'forever' : formatDays(retention.days)
}

function expiredText(retention) {
  if (retention === null || retention.rows === null) return '–'
  return retention.rows === 0 ? '0' : `${formatCount(retention.rows)} rows, ${formatBytes(retention.bytes)}`
}
