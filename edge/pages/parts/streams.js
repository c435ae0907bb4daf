// Live updates for all tabs over few connections, because HTTP/1.1 allows six for each host. One visible tab
// holds the streams and shares their frames with the others. Hidden tabs receive nothing. If a proxy buffers streams,
// that tab polls instead.
//
// A topic is `overview` (the monitor), `jobs` (all jobs of the account), `job:ID` or `batch:ID`.

import { renewSession, send, signInAgain } from './api.js'

const BACKOFF_MS = [500, 1000, 2000, 5000]
const POLL_MS = 3000
// A stream sends its first frame immediately. A longer silence means that a proxy buffers it.
const FIRST_FRAME_MS = 5000
const TRY_AGAIN_MS = 600_000
// Tabs repeat their topics, so that the topics of a tab that crashed expire.
const REPEAT_MS = 10_000
const EXPIRE_MS = 25_000

const tab = `${Date.now()}-${Math.random()}`
const subscriptions = new Map()
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel('millrace-streams') : null
let leader = null
let lock = null

/**
 * Subscribes to a topic and returns a function that ends this. `handlers` maps event names to functions that receive
 * the data. `onState` receives `live`, `lost`, `polling` or the 4xx status of a refusal, after which nothing follows.
 * After `live`, a page must read what it may have missed.
 */
export function subscribe(topic, handlers, onState = () => {}) {
  const subscription = { handlers, onState }
  const own = subscriptions.get(topic) ?? new Set()
  subscriptions.set(topic, own.add(subscription))
  update(topic)
  return () => {
    own.delete(subscription)
    if (own.size > 0 || subscriptions.get(topic) !== own) return
    subscriptions.delete(topic)
    update()
  }
}

const wantedTopics = () => (document.hidden ? [] : [...subscriptions.keys()])

/** Tells the leader the topics of this tab. `added` is a topic whose last frames this tab needs. */
function update(added = null) {
  const topics = wantedTopics()
  if (topics.length > 0) requestLead()
  else releaseLead()
  receive({ kind: 'topics', from: tab, topics, added })
  post({ kind: 'topics', from: tab, topics, added })
}

const post = (message) => channel?.postMessage(message)

function receive(message) {
  const { kind, from, topics, added, topic, event, data, to } = message
  if (to !== undefined && to !== tab) return
  if (kind === 'topics') leader?.setTopics(from, topics, added)
  else if (kind === 'roll call') post({ kind: 'topics', from: tab, topics: wantedTopics(), added: null })
  else if (kind === 'frame') for (const { handlers } of [...(subscriptions.get(topic) ?? [])]) handlers[event]?.(data)
  else if (kind === 'state') for (const { onState } of [...(subscriptions.get(topic) ?? [])]) onState(data)
}

if (channel !== null) channel.onmessage = ({ data }) => receive(data)
document.addEventListener('visibilitychange', () => update())
addEventListener('pagehide', () => {
  post({ kind: 'topics', from: tab, topics: [], added: null })
  releaseLead()
})
addEventListener('pageshow', (event) => event.persisted && update())
setInterval(() => subscriptions.size > 0 && update(), REPEAT_MS)

/** Waits for the lock of the leader. Without locks, each visible tab leads itself. */
function requestLead() {
  if (lock !== null) return
  lock = new AbortController()
  const { signal } = lock
  const lead = () => {
    if (signal.aborted) return null
    leader = createLeader()
    leader.setTopics(tab, wantedTopics(), null)
    post({ kind: 'roll call' })
    return new Promise((resolve) => signal.addEventListener('abort', resolve))
  }
  if (!('locks' in navigator) || channel === null) return lead()
  navigator.locks.request('millrace-streams', { signal }, lead).catch(() => {})
}

function releaseLead() {
  leader?.close()
  leader = null
  lock?.abort()
  lock = null
}

/** Holds the sources of all topics. */
function createLeader() {
  const topicsByTab = new Map()
  const sources = new Map()
  const lastFrames = new Map()
  const lastStates = new Map()
  const refused = new Set()
  let isClosed = false

  const share = (message) => {
    receive(message)
    post(message)
  }
  const report = {
    frame: (topic, event, data) => {
      lastFrames.set(topic, (lastFrames.get(topic) ?? new Map()).set(event, data))
      share({ kind: 'frame', topic, event, data })
    },
    state: (topic, state) => {
      if (typeof state === 'number') refused.add(topic)
      lastStates.set(topic, state)
      share({ kind: 'state', topic, data: state })
    },
  }
  const deliver = (message) => (message.to === tab ? receive(message) : post(message))
  const replay = (to, topic) => {
    if (lastStates.has(topic)) deliver({ kind: 'state', to, topic, data: lastStates.get(topic) })
    for (const [event, data] of lastFrames.get(topic) ?? []) deliver({ kind: 'frame', to, topic, event, data })
  }
  const sync = () => {
    const now = Date.now()
    for (const [from, { seenAt }] of topicsByTab) if (now - seenAt > EXPIRE_MS) topicsByTab.delete(from)
    const topics = [...new Set([...topicsByTab.values()].flatMap(({ topics }) => topics))].filter((topic) => !refused.has(topic))
    for (const topic of [...lastFrames.keys(), ...lastStates.keys()]) {
      if (topics.includes(topic)) continue
      lastFrames.delete(topic)
      if (!refused.has(topic)) lastStates.delete(topic)
    }
    const wanted = groupTopics(topics)
    for (const [path, source] of sources) {
      if (wanted.has(path)) continue
      source.close()
      sources.delete(path)
    }
    for (const [path, group] of wanted) if (!sources.has(path)) sources.set(path, openSource(path, group, report))
  }
  return {
    setTopics: (from, topics, added) => {
      if (isClosed) return
      if (topics.length === 0) topicsByTab.delete(from)
      else topicsByTab.set(from, { topics, seenAt: Date.now() })
      if (added !== null) replay(from, added)
      // Several parts of a page subscribe one after the other.
      queueMicrotask(() => isClosed || sync())
    },
    close: () => {
      isClosed = true
      for (const source of sources.values()) source.close()
    },
  }
}

/** Returns the topics of each path. One path covers all single jobs. */
function groupTopics(topics) {
  const paths = new Map()
  const ids = topics.filter((topic) => topic.startsWith('job:')).map((topic) => topic.slice(4))
  if (ids.length > 0) paths.set(`/api/v1/jobs/events?ids=${ids.toSorted().join(',')}`, ids.map((id) => `job:${id}`))
  for (const topic of topics) {
    if (topic === 'overview') paths.set('/api/v1/jobs/overview/events', [topic])
    if (topic === 'jobs') paths.set('/api/v1/jobs/events', [topic])
    if (topic.startsWith('batch:')) paths.set(`/api/v1/jobs/events?batch=${topic.slice(6)}`, [topic])
  }
  return paths
}

const EVENTS = ['status', 'queues', 'workers', 'running', 'queued', 'waiting', 'failed']

/** Opens a stream or, if a proxy buffers streams, polls. Returns a function that closes it. */
function openSource(path, topics, report) {
  let close = isBuffered() ? poll(topics, report) : openStream(path, topics, report, fallBack)
  function fallBack() {
    setBuffered()
    close = poll(topics, report)
  }
  return { close: () => close() }
}

// Kept for the next page of this tab, which then polls immediately.
const isBuffered = () => Date.now() - Number(sessionStorage.getItem('buffered-since') ?? 0) < TRY_AGAIN_MS
const setBuffered = () => sessionStorage.setItem('buffered-since', String(Date.now()))

/**
 * The browser reconnects after a lost connection. After a refusal, this function renews the session and reopens the
 * stream, with backoff.
 */
function openStream(path, topics, report, onBuffered) {
  const begins = topics[0] === 'overview' || topics[0].startsWith('job:')
  let source = null
  let failures = 0
  let isClosed = false
  let silence = null
  const setState = (state) => topics.forEach((topic) => report.state(topic, state))
  const close = () => {
    isClosed = true
    clearTimeout(silence)
    source.close()
  }
  const open = () => {
    source = new EventSource(path)
    silence = setTimeout(() => {
      close()
      onBuffered()
    }, FIRST_FRAME_MS)
    source.onopen = () => {
      failures = 0
      if (!begins) clearTimeout(silence)
      setState('live')
    }
    for (const event of EVENTS)
      source.addEventListener(event, ({ data, lastEventId }) => {
        clearTimeout(silence)
        const frame = JSON.parse(data)
        report.frame(topics[0].startsWith('job:') ? `job:${frame.job_id}` : topics[0], event, frame)
        // The service ends the stream of named jobs after their last frame.
        if (lastEventId === 'end') close()
      })
    source.onerror = () => {
      clearTimeout(silence)
      if (isClosed) return
      setState('lost')
      if (source.readyState === EventSource.CLOSED) setTimeout(reopen, BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)])
    }
  }
  const reopen = async () => {
    if (isClosed) return
    const status = await probe(path)
    if (isClosed) return
    if (status < 400 || status >= 500) return open()
    // One missing job refuses the stream of all.
    const statuses = await Promise.all(topics.map((topic) => (topics.length > 1 ? probe(pathOf(topic)) : status)))
    for (const [i, topic] of topics.entries()) if (statuses[i] >= 400 && statuses[i] < 500) report.state(topic, statuses[i])
  }
  open()
  return close
}

/** Returns the status of a request; 503 if the service is unreachable. Renews the session. */
async function probe(path) {
  const { status } = await send('HEAD', path).catch(() => ({ status: 503 }))
  if (status !== 401) return status
  return (await renewSession().catch(() => false)) || (await signInAgain()) ? 200 : 401
}

/** Returns the path that reads the current state of a topic. */
function pathOf(topic) {
  if (topic === 'overview') return '/api/v1/jobs/overview'
  if (topic === 'jobs') return '/api/v1/jobs?limit=50'
  const [kind, id] = topic.split(':')
  return kind === 'job' ? `/api/v1/jobs/${id}` : `/api/v1/batches/${id}`
}

/** Reads the states of topics at intervals and reports those that changed. Returns a function that ends this. */
function poll(topics, report) {
  const known = new Map()
  const open = new Set(topics)
  let isClosed = false
  let timer = null
  const readTopic = async (topic) => {
    const response = await send('GET', pathOf(topic)).catch(() => null)
    if (response?.status === 401 && (await renewSession().catch(() => false))) return readTopic(topic)
    if (isClosed) return
    if (response === null || response.status >= 500) return report.state(topic, 'lost')
    if (!response.ok) {
      open.delete(topic)
      return report.state(topic, response.status)
    }
    const data = await response.json()
    report.state(topic, 'polling')
    const frames = topic === 'overview' ? Object.entries(data) : (Array.isArray(data) ? data.toReversed() : [data]).map((job) => ['status', job])
    for (const [event, frame] of frames) {
      const key = `${topic} ${frame.job_id ?? event}`
      const text = JSON.stringify(frame)
      if (known.get(key) === text) continue
      known.set(key, text)
      report.frame(topic, event, frame)
    }
  }
  const read = async () => {
    await Promise.all([...open].map(readTopic))
    if (!isClosed) timer = setTimeout(read, POLL_MS)
  }
  read()
  return () => {
    isClosed = true
    clearTimeout(timer)
  }
}
