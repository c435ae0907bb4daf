// Numbers and times for people. Times are the server's: `setClock` computes the offset to ours from what it sends.

let ahead = 0

/** Called with the server's current time. */
export function setClock(at) {
  ahead = Date.parse(at) - Date.now()
}

export function now() {
  return Date.now() + ahead
}

export function count(n) {
  return n.toLocaleString('en')
}

/** A rate in events per second. */
export function rate(perSecond) {
  if (perSecond === 0) return '0'
  if (perSecond >= 100) return `${count(Math.round(perSecond))}/s`
  return perSecond >= 1 ? `${perSecond.toFixed(1)}/s` : `${count(Math.round(perSecond * 60))}/min`
}

/** A duration in ms, to about two figures. */
export function span(ms) {
  if (ms < 0) return '0 s'
  if (ms < 1000) return `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`
  const s = ms / 1000
  if (s < 10) return `${s.toFixed(1)} s`
  return passed(ms)
}

/** A duration in ms, to the second: for values that keep counting while they are shown. */
export function passed(ms) {
  const s = Math.max(0, Math.floor(ms / 1000))
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`
}

export function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10))
  const value = n / 1024 ** power
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

/** A change of a number of bytes, with its sign. */
export function change(n) {
  if (n === 0) return '0'
  return `${n > 0 ? '+' : '−'}${bytes(Math.abs(n))}`
}

/** An amount in US dollars; null: not known. */
export function dollars(n) {
  if (n === null) return 'not known'
  const digits = n !== 0 && n < 1 ? 4 : 2
  return `$${n.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: digits })}`
}

/** A number of days, or of hours if it is less than one. */
export function days(n) {
  const [value, unit] = n < 1 ? [Number((n * 24).toFixed(1)), 'hour'] : [Number(n.toFixed(1)), 'day']
  return `${count(value)} ${unit}${value === 1 ? '' : 's'}`
}

export function clock(iso) {
  return new Date(iso).toLocaleTimeString('en-GB', { hour12: false })
}

/** A time of day to the millisecond. */
export function instant(iso) {
  return new Date(iso).toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hour12: false,
  })
}

export function moment(iso) {
  return new Date(iso).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}

/** The same to the millisecond. */
export function exactly(iso) {
  return `${new Date(iso).toLocaleDateString('en-GB', { dateStyle: 'medium' })}, ${instant(iso)}`
}

/** The end of an id, the part in which ids differ. */
export function brief(id) {
  return id.slice(-8)
}

// Elements with `data-since` show how long ago that was, with `data-until` how soon it will be, updated every second without a
// message from the server.
setInterval(() => {
  for (const node of document.querySelectorAll('[data-since], [data-until]')) {
    const text = counted(node)
    if (node.textContent !== text) node.textContent = text
  }
}, 1000)

function counted({ dataset }) {
  if (dataset.until === undefined) return passed(now() - Date.parse(dataset.since)) + (dataset.after ?? '')
  const left = Date.parse(dataset.until) - now()
  return left > 0 ? `in ${passed(left)}` : 'now'
}

/** Makes an element show how long ago something was; with null it shows a dash. */
export function since(node, iso, after = '') {
  if (iso === null) {
    delete node.dataset.since
    node.textContent = '–'
    return
  }
  if (node.dataset.since === iso) return
  node.dataset.since = iso
  node.dataset.after = after
  node.title = moment(iso)
  node.textContent = counted(node)
}

/** Makes an element show how soon something will be; with null it shows a dash. */
export function until(node, iso) {
  if (node.dataset.until === iso) return
  if (iso === null) delete node.dataset.until
  else node.dataset.until = iso
  node.textContent = iso === null ? '–' : counted(node)
}
