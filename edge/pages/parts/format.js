// Formats numbers and times. Times are the server's: `setClock` computes the offset of its clock.

let clockOffset = 0

/** Computes the clock offset from the server's current time. */
export function setClock(at) {
  clockOffset = Date.parse(at) - Date.now()
}

export function now() {
  return Date.now() + clockOffset
}

export function formatCount(n) {
  return n.toLocaleString('en')
}

/** Formats a rate of events per second. Low rates are shown per minute or hour. */
export function formatRate(perSecond) {
  if (perSecond === 0) return '0'
  if (perSecond >= 100) return `${formatCount(Math.round(perSecond))}/s`
  if (perSecond >= 1) return `${perSecond.toFixed(1)}/s`
  return perSecond >= 1 / 60 ? `${formatCount(Math.round(perSecond * 60))}/min` : `${formatCount(Math.round(perSecond * 3600))}/h`
}

/** Formats a duration in ms to about two significant figures. */
export function formatDuration(ms) {
  if (ms < 0) return '0 s'
  if (ms < 1000) return `${ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms)} ms`
  const s = ms / 1000
  if (s < 10) return `${s.toFixed(1)} s`
  return formatElapsed(ms)
}

/** Formats a duration in ms in whole seconds or coarser units, for values that keep counting on the page. */
export function formatElapsed(ms) {
  const s = Math.max(0, Math.floor(ms / 1000))
  if (s < 60) return `${s} s`
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`
}

export function formatBytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const power = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10))
  const value = n / 1024 ** power
  return `${value >= 100 || power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

/** Formats a change in bytes with its sign. */
export function formatByteChange(n) {
  if (n === 0) return '0'
  return `${n > 0 ? '+' : '−'}${formatBytes(Math.abs(n))}`
}

/** Formats an amount of US dollars; null means unknown. */
export function formatDollars(n) {
  if (n === null) return 'unknown'
  const digits = n !== 0 && n < 1 ? 4 : 2
  return `$${n.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: digits })}`
}

/** Formats a number of days; below one day, it is shown in hours. */
export function formatDays(n) {
  const [value, unit] = n < 1 ? [Number((n * 24).toFixed(1)), 'hour'] : [Number(n.toFixed(1)), 'day']
  return `${formatCount(value)} ${unit}${value === 1 ? '' : 's'}`
}

export function formatTime(iso) {
  return new Date(iso).toLocaleTimeString('en-GB', { hour12: false })
}

/** Formats a time of today as a time, and another with its date. */
export function formatShort(iso) {
  const time = new Date(iso)
  const isToday = time.toDateString() === new Date().toDateString()
  return isToday ? time.toLocaleTimeString('en-GB') : time.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })
}

/** Formats the time of day to the millisecond. */
export function formatTimeMs(iso) {
  return new Date(iso).toLocaleTimeString('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
    hour12: false,
  })
}

export function formatDateTime(iso) {
  return new Date(iso).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}

/** Formats date and time to the minute. */
export function formatMinute(iso) {
  return new Date(iso).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
}

/** Formats date and time to the millisecond. */
export function formatDateTimeMs(iso) {
  return `${new Date(iso).toLocaleDateString('en-GB', { dateStyle: 'medium' })}, ${formatTimeMs(iso)}`
}

/** Returns the last characters of an id, because they are random. */
export function shortId(id) {
  return id.slice(-8)
}

// Elements with `data-since` show the time since then, and those with `data-until` the time until then. A timer updates
// them every second, so that the server need not.
setInterval(() => {
  for (const node of document.querySelectorAll('[data-since], [data-until]')) {
    const text = relativeText(node)
    if (node.textContent !== text) node.textContent = text
  }
}, 1000)

function relativeText({ dataset }) {
  if (dataset.until === undefined) return formatElapsed(now() - Date.parse(dataset.since)) + (dataset.after ?? '')
  const left = Date.parse(dataset.until) - now()
  return left > 0 ? `in ${formatElapsed(left)}` : 'now'
}

/** Shows the time since `iso` in a node; null shows a dash. */
export function showAge(node, iso, after = '') {
  if (iso === null) {
    delete node.dataset.since
    node.textContent = '–'
    return
  }
  if (node.dataset.since === iso) return
  node.dataset.since = iso
  node.dataset.after = after
  node.title = formatDateTime(iso)
  node.textContent = relativeText(node)
}

/** Shows the time until `iso` in a node; null shows a dash. */
export function showCountdown(node, iso) {
  if (node.dataset.until === iso) return
  if (iso === null) delete node.dataset.until
  else node.dataset.until = iso
  node.textContent = iso === null ? '–' : relativeText(node)
}
