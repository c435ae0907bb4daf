// Graph of jobs by their dependencies, with live states. Jobs of a column depend only on jobs to its left.

import { h, svg } from '../parts/dom.js'
import { shortId } from '../parts/format.js'
import { jobPath } from '../parts/jobs.js'

const WIDTH = 168
const HEIGHT = 26
const GAP_X = 56
const GAP_Y = 10
// The last part of a task's name fits into a node.
const MAX_TEXT = 21

/** Returns the jobs of each level. A job without dependencies among the jobs has the level 0. */
function levelsOf(jobs) {
  const byId = new Map(jobs.map((job) => [job.job_id, job]))
  const levels = new Map()
  // Dependencies are added before the jobs that need them.
  for (const { job_id, after } of jobs) levels.set(job_id, Math.max(-1, ...after.filter((id) => byId.has(id)).map((id) => levels.get(id) ?? 0)) + 1)
  const columns = []
  for (const job of jobs) (columns[levels.get(job.job_id)] ??= []).push(job)
  return columns
}

/** Orders the jobs of each level by the places of their dependencies, so that fewer lines cross. */
function placesOf(columns) {
  const places = new Map()
  for (const [x, column] of columns.entries()) {
    const wanted = ({ after }, y) => {
      const rows = after.map((id) => places.get(id)?.y).filter((row) => row !== undefined)
      return rows.length === 0 ? y : rows.reduce((sum, row) => sum + row, 0) / rows.length
    }
    const ordered = column.map((job, y) => [wanted(job, y), job]).toSorted(([a], [b]) => a - b)
    for (const [y, [, job]] of ordered.entries()) places.set(job.job_id, { x, y })
  }
  return places
}

/**
 * Makes the graph of jobs `{ job_id, name, status, after }`. `setStatus(id, status)` changes the state of one.
 */
export function jobGraph(title, jobs) {
  const columns = levelsOf(jobs)
  const tallest = Math.max(...columns.map(({ length }) => length))
  const places = placesOf(columns)
  // Columns are centred, as trees and funnels look best.
  const at = (id) => {
    const { x, y } = places.get(id)
    const offset = ((tallest - columns[x].length) * (HEIGHT + GAP_Y)) / 2
    return { left: x * (WIDTH + GAP_X), top: offset + y * (HEIGHT + GAP_Y) }
  }
  const lines = jobs.flatMap(({ job_id, after }) => after.filter((id) => places.has(id)).map((id) => lineBetween(at(id), at(job_id))))
  const nodes = new Map(jobs.map((job) => [job.job_id, makeNode(job, at(job.job_id))]))
  const [width, height] = [columns.length * (WIDTH + GAP_X) - GAP_X, tallest * (HEIGHT + GAP_Y) - GAP_Y]
  const picture = svg(
    'svg',
    { width: width + 4, height: height + 4, viewBox: `-2 -2 ${width + 4} ${height + 4}` },
    svg('g', { class: 'lines', 'aria-hidden': 'true' }, ...lines),
    ...[...nodes.values()].map(({ node }) => node),
  )
  const node = h('div', { class: 'graph', role: 'group', 'aria-label': title, tabindex: '0' }, picture)
  return { node, setStatus: (id, status) => nodes.get(id)?.setStatus(status) }
}

function lineBetween(from, to) {
  const [x1, y1, x2, y2] = [from.left + WIDTH, from.top + HEIGHT / 2, to.left, to.top + HEIGHT / 2]
  const middle = (x1 + x2) / 2
  return svg('path', { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}` })
}

function makeNode({ job_id, name, status }, { left, top }) {
  const task = name.slice(Math.max(name.lastIndexOf('.'), name.lastIndexOf('/')) + 1)
  const text = task.length > MAX_TEXT ? `${task.slice(0, MAX_TEXT - 1)}…` : task
  const title = svg('title')
  const node = svg(
    'a',
    { href: jobPath(job_id), transform: `translate(${left} ${top})` },
    title,
    svg('rect', { width: WIDTH, height: HEIGHT, rx: 5 }),
    svg('circle', { cx: 13, cy: HEIGHT / 2, r: 4.5 }),
    svg('text', { x: 25, y: HEIGHT / 2 + 4 }, text),
  )
  const setStatus = (now) => {
    node.setAttribute('class', `job-node ${now}`)
    title.textContent = `${name} ${shortId(job_id)}: ${now}`
  }
  setStatus(status)
  return { node, setStatus }
}
