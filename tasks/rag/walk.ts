import type { Dirent } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { fail } from '../../sql/errors.ts'
import { extensionOf } from './formats.ts'
import { createAccessFailure, type IndexTarget, isWithin } from './target.ts'

/** Lists the files to index. No other module imports `ignore`. */

/** A file: its path below the root, separated by `/`, and its absolute path. */
export interface FoundFile {
  readonly source: string
  readonly path: string
}

/** A requested source that is not in the index, and the reason. */
export interface SkippedSource {
  readonly source: string
  readonly reason: string
}

export interface WalkResult {
  readonly files: readonly FoundFile[]
  readonly skipped: readonly SkippedSource[]
}

export interface WalkOptions {
  /** Extensions to index, in lower case without dots. */
  readonly extensions: ReadonlySet<string>
  /** Patterns in .gitignore syntax, relative to the target. They cannot re-include paths that are never indexed. */
  readonly excludes: readonly string[]
  /** Absolute paths of folders to skip, such as the service's own data. */
  readonly skippedFolders: readonly string[]
  readonly signal: AbortSignal
}

// Paths that are never indexed: version control, dependencies, generated files and secrets. All names that begin with a
// dot are excluded, such as .git, .env, .ssh, .aws and .npmrc.
const NEVER_INDEXED = `
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

// `ignore` compiles patterns to regular expressions, whose backtracking multiplies with each star within a path
// segment.
const MANY_STARS_PATTERN = /(?:\*[^/]*){4}/
// A target with more files is probably a mistake, or needs another kind of search engine.
const MAX_FILES = 100_000

/**
 * Lists the files of a target to index, sorted by source. Does not follow symbolic links, because files inside the
 * target are found at their own paths. `skipped` lists unreadable folders, links and special files, but no excluded
 * files.
 *
 * @throws fail('rag.path_excluded'), fail('rag.path_denied'), fail('rag.path_missing'), fail('rag.too_many_files'),
 * fail('rag.exclude_invalid').
 */
export async function listFiles(target: IndexTarget, options: WalkOptions): Promise<WalkResult> {
  const files: FoundFile[] = []
  const skipped: SkippedSource[] = []
  const never = ignore({ ignorecase: true }).add(NEVER_INDEXED)
  const excludes = createMatcher(options.excludes, 'rag.exclude_invalid')
  const sourceOf = (path: string): string => relative(target.root, path).split(sep).join('/')
  const targetSource = sourceOf(target.path)
  const isOwnFolder = options.skippedFolders.some((own) => isWithin(own, target.path))
  if (
    isOwnFolder ||
    (targetSource !== '' && never.ignores(target.isFolder ? `${targetSource}/` : targetSource))
  )
    throw fail('rag.path_excluded')

  const visit = (folder: string, entry: Dirent): string | null => {
    const path = join(folder, entry.name)
    const source = sourceOf(path)
    // The caller's patterns are relative to the target; NEVER_INDEXED is relative to the root.
    const relativePath = relativePathOf(path, target)
    const slash = entry.isDirectory() ? '/' : ''
    if (never.ignores(source + slash) || excludes.ignores(relativePath + slash)) return null
    if (options.skippedFolders.some((own) => isWithin(own, path))) return null
    if (entry.isDirectory()) return path
    if (!options.extensions.has(extensionOf(entry.name))) return null
    const reason = specialKindOf(entry)
    if (reason !== null) skipped.push({ source, reason })
    else if (files.push({ source, path }) > MAX_FILES) throw fail('rag.too_many_files', { max: MAX_FILES })
    return null
  }

  const startFolder = target.isFolder ? target.path : dirname(target.path)
  const folders = [startFolder]
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    options.signal.throwIfAborted()
    const at = folder
    const entries = await readdir(at, { withFileTypes: true }).catch((error) => {
      // An empty result would remove all files of the target from the collection.
      if (at === startFolder) throw createAccessFailure(error)
      skipped.push({ source: sourceOf(at), reason: describeFileError(error) })
      return []
    })
    const selected = target.isFolder ? entries : entries.filter(({ name }) => name === basename(target.path))
    for (const entry of selected) {
      const next = visit(at, entry)
      if (next !== null) folders.push(next)
    }
  }
  const bySource = (a: { source: string }, b: { source: string }): number => (a.source < b.source ? -1 : 1)
  return { files: files.sort(bySource), skipped: skipped.sort(bySource) }
}

/** Returns the path of a file relative to the target, or to the folder of a target that is a file. */
export const relativePathOf = (path: string, target: IndexTarget): string =>
  relative(target.isFolder ? target.path : dirname(target.path), path)
    .split(sep)
    .join('/')

/** Compiles patterns in .gitignore syntax. @throws the failure with this code if one is invalid. */
export function createMatcher(
  patterns: readonly string[],
  code: 'rag.exclude_invalid' | 'rag.metadata_pattern',
  options: { readonly ignorecase?: boolean } = {},
): Ignore {
  try {
    if (patterns.some((pattern) => MANY_STARS_PATTERN.test(pattern)))
      throw new Error('A pattern has too many stars')
    const matcher = ignore(options).add([...patterns])
    // Compile the patterns now, which throws if one is invalid.
    matcher.ignores('a')
    return matcher
  } catch {
    throw fail(code)
  }
}

function specialKindOf(entry: Dirent): string | null {
  if (entry.isFile()) return null
  if (entry.isSymbolicLink()) return 'a symbolic link'
  if (entry.isFIFO()) return 'a pipe'
  if (entry.isSocket()) return 'a socket'
  return 'a device'
}

/** Returns the reason why a file or folder could not be read. */
export function describeFileError(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EACCES' || code === 'EPERM') return 'permission denied'
  if (code === 'ENOENT') return 'deleted during the run'
  if (code === 'ELOOP') return 'a symbolic link'
  return 'could not be read'
}
