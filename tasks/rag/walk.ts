import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { fail } from '../../sql/errors.ts'
import { extensionOf } from './formats.ts'
import { isWithin, type Place, refusal } from './place.ts'

/** Finds the files to index. The only importer of `ignore`. */

/** A file: its path below the root, separated by `/`, and its absolute path. */
export interface Found {
  readonly source: string
  readonly path: string
}

/** Why something that was requested is not in the index. */
export interface Skipped {
  readonly source: string
  readonly reason: string
}

export interface Walked {
  readonly files: readonly Found[]
  readonly skipped: readonly Skipped[]
}

export interface WalkOptions {
  /** In lower case, without dots. */
  readonly extensions: ReadonlySet<string>
  /** In the syntax of .gitignore; they can't bring back what is never indexed. */
  readonly excludes: readonly string[]
  /** Folders that are never entered, such as the service's own data; absolute. */
  readonly never: readonly string[]
  readonly signal: AbortSignal
}

// Version control, dependencies, build output and secrets. This includes everything that begins with a dot: .git, .env,
// .ssh, .aws, .npmrc.
const NEVER = `
.*
node_modules/
bower_components/
jspm_packages/
vendor/
site-packages/
__pycache__/
venv/
virtualenv/
Pods/
target/debug/
target/release/
*.pem
*.key
*.p12
*.pfx
*.jks
*.keystore
*.kdbx
*.asc
*.gpg
*.ppk
id_rsa*
id_dsa*
id_ecdsa*
id_ed25519*
*secret*.json
*secret*.y*ml
*secret*.toml
*credential*.json
*credential*.y*ml
service-account*.json
*.tfstate*
*.min.js
*.min.css
*.map
package-lock.json
yarn.lock
pnpm-lock.yaml
`

// A pattern becomes a regular expression, and each star in one part of a path multiplies its backtracking.
const MANY_STARS = /(?:\*[^/]*){4}/
// More would need another kind of search engine, and is most likely a mistake.
const MAX_FILES = 100_000

/**
 * Every file of a place that is to be read, in order of its source. Symbolic links are not followed: targets inside the
 * place are found where they are. Unreadable files are reported, excluded ones are not.
 * @throws fail('rag.path_excluded'), fail('rag.path_denied'), fail('rag.path_missing'), fail('rag.too_many_files'),
 *   fail('rag.exclude_invalid').
 */
export async function walk(place: Place, options: WalkOptions): Promise<Walked> {
  const files: Found[] = []
  const skipped: Skipped[] = []
  const never = ignore({ ignorecase: true }).add(NEVER)
  const excludes = excludesOf(options.excludes)
  const sourceOf = (path: string): string => relative(place.root, path).split(sep).join('/')
  const given = sourceOf(place.path)
  const isKept = options.never.some((kept) => isWithin(kept, place.path))
  if (isKept || (given !== '' && never.ignores(place.isFolder ? `${given}/` : given)))
    throw fail('rag.path_excluded')

  const visit = (folder: string, entry: Dirent): string | null => {
    const path = join(folder, entry.name)
    const source = sourceOf(path)
    // The caller's patterns are relative to the place, ours to the root.
    const below = relative(place.isFolder ? place.path : dirname(place.path), path)
      .split(sep)
      .join('/')
    const end = entry.isDirectory() ? '/' : ''
    if (never.ignores(source + end) || excludes.ignores(below + end)) return null
    if (options.never.some((kept) => isWithin(kept, path))) return null
    if (entry.isDirectory()) return path
    if (!options.extensions.has(extensionOf(entry.name))) return null
    const reason = kindOf(entry)
    if (reason !== null) skipped.push({ source, reason })
    else if (files.push({ source, path }) > MAX_FILES) throw fail('rag.too_many_files', { max: MAX_FILES })
    return null
  }

  const top = place.isFolder ? place.path : dirname(place.path)
  const folders = [top]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    options.signal.throwIfAborted()
    const at = folder
    const entries = await readdir(at, { withFileTypes: true }).catch((error) => {
      // All that is indexed of it would be gone.
      if (at === top) throw refusal(error)
      skipped.push({ source: sourceOf(at), reason: reasonOf(error) })
      return []
    })
    const wanted = place.isFolder ? entries : entries.filter(({ name }) => name === basename(place.path))
    for (const entry of wanted) {
      const next = visit(at, entry)
      if (next !== null) folders.push(next)
    }
  }
  const bySource = (a: { source: string }, b: { source: string }): number => (a.source < b.source ? -1 : 1)
  return { files: files.sort(bySource), skipped: skipped.sort(bySource) }
}

function excludesOf(patterns: readonly string[]): Ignore {
  try {
    if (patterns.some((pattern) => MANY_STARS.test(pattern))) throw new Error('Too many stars')
    const made = ignore().add([...patterns])
    made.ignores('a')
    return made
  } catch {
    throw fail('rag.exclude_invalid')
  }
}

function kindOf(entry: Dirent): string | null {
  if (entry.isFile()) return null
  if (entry.isSymbolicLink()) return 'a symbolic link'
  if (entry.isFIFO()) return 'a pipe'
  if (entry.isSocket()) return 'a socket'
  return 'a device'
}

/** Why a file or folder could not be read, in words. */
export function reasonOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  if (code === 'ENOENT') return 'gone meanwhile'
  if (code === 'ELOOP') return 'a symbolic link'
  return 'it could not be read'
}
