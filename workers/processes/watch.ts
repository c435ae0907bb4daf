import { type FSWatcher, readdirSync, statSync, watch } from 'node:fs'
import { basename, join } from 'node:path'
import { StartError } from '../../sql/server/start-error.ts'
import type { Log } from '../../tasks/platform/log.ts'
import type { Supervisor } from './supervise.ts'

/** `npm run dev`: restarts the processes whose code has changed. */

/** Something that a changed file requires: a migration, restarts, or a new start by hand. */
export type Effect = 'migrate' | 'edges' | 'workers' | 'start'

const ROOMS = ['edge', 'sql', 'tasks', 'workers'] as const
// Editors and `git checkout` change several files together.
const SETTLE_MS = 150

// The first pattern that matches a path decides.
const RULES: readonly (readonly [RegExp, readonly Effect[]])[] = [
  [/(^|\/)\.|~$|\/README\.md$|^edge\/(cli|client)\/|^sql\/schema\.sql$/, []],
  [/^edge\/pages\/pages\.json$/, ['edges']],
  // The edge reads pages again for each request.
  [/^edge\/pages\//, []],
  [/^edge\/.*\.(ts|md|json)$/, ['edges']],
  [/^workers\/(start|processes\/(start-all|supervise|watch))\.ts$/, ['start']],
  [/^workers\/.*\.ts$|^tasks\/.*\.work\.ts$/, ['workers']],
  [/^tasks\/.*\.ts$|^sql\/.*\.ts$/, ['edges', 'workers']],
  [/^sql\/.*\.sql$/, ['migrate']],
]

/**
 * Returns what a changed file requires.
 * @param isNew true if the file did not exist when the processes started. The edge lists the files of pages then.
 */
export function effectsOf(path: string, isNew = false): readonly Effect[] {
  if (isNew && /^edge\/pages\/\w+\/[\w-]+\.(js|css|svg)$/.test(path)) return ['edges']
  return RULES.find(([pattern]) => pattern.test(path))?.[1] ?? []
}

export interface WatchOptions {
  /** Folder of the rooms. */
  readonly root: string
  readonly edges: readonly string[]
  readonly workers: readonly string[]
  readonly supervisor: Pick<Supervisor, 'restart'>
  readonly migrate: () => Promise<unknown>
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** Watches the code until the returned function is called. A change during a restart begins another one. */
export function watchCode({ root, edges, workers, supervisor, migrate, log }: WatchOptions): () => void {
  const changed = new Set<string>()
  const effects = new Set<Effect>()
  let timer: NodeJS.Timeout | undefined
  let generation = 0
  let isStopped = false

  const apply = async (): Promise<void> => {
    const [files, wanted] = [[...changed], new Set(effects)]
    changed.clear()
    effects.clear()
    const own = ++generation
    const beganAt = performance.now()
    if (wanted.has('start')) log.warn({ files }, 'Start `npm run dev` again: its own code has changed')
    const isMigrated = wanted.has('migrate') && (await migrateOrLog(migrate, log))
    const names = [...(wanted.has('edges') ? edges : []), ...(wanted.has('workers') ? workers : [])]
    await Promise.all(names.map((name) => supervisor.restart(name)))
    const done = [
      ...(isMigrated ? ['migrated'] : []),
      ...(names.length > 0 ? [`restarted ${names.join(', ')}`] : []),
    ]
    // A later change may have restarted the same processes.
    if (own !== generation || done.length === 0) return
    const seconds = ((performance.now() - beganAt) / 1000).toFixed(1)
    log.info({ files }, `Changed ${describeFiles(files)}: ${done.join(' and ')} in ${seconds} s`)
  }

  const stopWatching = watchFolders(root, (path, isNew) => {
    const found = effectsOf(path, isNew)
    if (found.length === 0) return
    changed.add(path)
    for (const effect of found) effects.add(effect)
    clearTimeout(timer)
    timer = setTimeout(() => {
      apply().catch((error: Error) => {
        if (!isStopped) log.error({ err: error }, 'The restart failed')
      })
    }, SETTLE_MS)
  })
  return () => {
    isStopped = true
    clearTimeout(timer)
    stopWatching()
  }
}

/** Migrates, and returns true if that succeeds. */
async function migrateOrLog(migrate: WatchOptions['migrate'], log: WatchOptions['log']): Promise<boolean> {
  try {
    await migrate()
    return true
  } catch (error) {
    const details = error instanceof StartError ? {} : { err: error }
    log.error(details, `The migration failed: ${(error as Error).message}`)
    return false
  }
}

/**
 * Reports changed paths below the rooms, and whether they are new, until the returned function is called. Watches each
 * folder, because a recursive watch of Node 22 on Linux misses changes of a file that an editor has replaced.
 */
function watchFolders(root: string, onChange: (path: string, isNew: boolean) => void): () => void {
  /** The known paths; null for a file. */
  const known = new Map<string, FSWatcher | null>()
  const forget = (path: string): void => {
    for (const [each, watcher] of known) {
      if (each !== path && !each.startsWith(`${path}/`)) continue
      watcher?.close()
      known.delete(each)
    }
  }
  /** Watches a folder and those in it, and returns the files of all. */
  const watchFolder = (folder: string): string[] => {
    try {
      const watcher = watch(join(root, folder), (type, name) => {
        if (name !== null) report(`${folder}/${name}`, type === 'rename')
      })
      known.set(folder, watcher)
      return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
        const path = `${folder}/${entry.name}`
        if (entry.isDirectory()) return entry.name.startsWith('.') ? [] : watchFolder(path)
        known.set(path, null)
        return [path]
      })
    } catch (error) {
      // `git checkout` may have removed it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      forget(folder)
      return []
    }
  }
  const report = (path: string, isRenamed: boolean): void => {
    const stats = statSync(join(root, path), { throwIfNoEntry: false })
    // A folder that was created again has the path of the earlier one, but needs a watch of its own.
    if (stats === undefined || (isRenamed && stats.isDirectory())) forget(path)
    const isNew = stats !== undefined && !known.has(path)
    if (isNew) known.set(path, null)
    const isNewFolder = isNew && stats.isDirectory() && !basename(path).startsWith('.')
    for (const file of isNewFolder ? watchFolder(path) : [path]) onChange(file, isNew)
  }
  for (const room of ROOMS) watchFolder(room)
  return () => {
    for (const watcher of known.values()) watcher?.close()
  }
}

const describeFiles = ([first, ...more]: readonly string[]): string =>
  more.length === 0 ? first! : `${first} and ${more.length} more`
