import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { openDataDir } from '../data-dir.ts'
import { StartError } from '../start-error.ts'
import { type Account, chooseAccount, letEnter, readOwner } from './account.ts'

/** Folders and user of an embedded database. */
export interface ClusterLocation {
  readonly account: Account | undefined
  /** Folder of data, sockets and lock: the data dir, or another folder that the data dir names. */
  readonly home: string
  /** True if `home` is outside the data dir. */
  readonly isMoved: boolean
  /** PostgreSQL's data folder, which may not exist yet. */
  readonly data: string
  /** Returns a root-owned folder for a copy of the binaries. Used for accounts that can't reach the installed ones. */
  readonly createSharedFolder: () => string
}

const NOTE_FILE_NAME = 'postgres.moved'

/**
 * Chooses the location of the database of `dataDir`. This is `dataDir` itself, unless root starts it and PostgreSQL's
 * user can't enter the parent folders. Then it is under /var/lib/millrace, or in the temporary directory if that is
 * unusable or for `ephemeral`. The file `postgres.moved` in `dataDir` names this other folder.
 * Throws a StartError if DATA_DIR is unusable, if its user can't reach an existing database, or if the folder in
 * `postgres.moved` is gone.
 */
export function findLocation(
  dataDir: string,
  ephemeral: boolean,
  log: (line: string) => void,
): ClusterLocation {
  openDataDir(dataDir)
  const own = realpathSync(dataDir)
  const noted = readNote(own)
  if (noted && !existsSync(noted) && !ephemeral) {
    throw new StartError(
      `The database of ${own} was kept in ${noted}, which is gone. Restore it, or delete ${path.join(own, NOTE_FILE_NAME)} to start with an empty database.`,
    )
  }
  const home = noted ?? own
  const data = resolveLinks(path.join(home, 'postgres'))
  const account = chooseAccount(readOwner(data))
  const createSharedFolder = () => findUsableFolder(account, listSharedFolders(ephemeral))
  const location = { account, home, isMoved: noted !== undefined, data, createSharedFolder }
  if (!account || (existsSync(home) && letEnter(account, home))) return location
  if (existsSync(data) && readdirSync(data).length > 0) {
    throw new StartError(
      `The database in ${data} belongs to the user ${account.uid}, who can't reach it. Let that user enter the folders above (chmod o+x), or move the data folder.`,
    )
  }
  const elsewhere = path.join(createSharedFolder(), computeFingerprint(own))
  mkdirSync(elsewhere, { recursive: true, mode: 0o700 })
  if (!letEnter(account, elsewhere)) throw new StartError(`The user ${account.uid} can't enter ${elsewhere}`)
  writeNote(own, elsewhere)
  log(
    `The database of ${own} lives in ${elsewhere}, because its user ${account.uid} can't enter the first folder`,
  )
  return {
    account,
    home: elsewhere,
    isMoved: true,
    data: path.join(elsewhere, 'postgres'),
    createSharedFolder,
  }
}

function readNote(dataDir: string): string | undefined {
  try {
    return readFileSync(path.join(dataDir, NOTE_FILE_NAME), 'utf8').split('\n')[0] || undefined
  } catch (error) {
    // Treats only a missing note as absent. Ignoring an unreadable one would create a second, empty database.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function resolveLinks(file: string): string {
  return existsSync(file) ? realpathSync(file) : file
}

function writeNote(dataDir: string, elsewhere: string): void {
  const text = `${elsewhere}\n\nThe database lives in the folder above, because its user can't reach this one.\n`
  writeFileSync(path.join(dataDir, NOTE_FILE_NAME), text, { mode: 0o600 })
}

function listSharedFolders(ephemeral: boolean): string[] {
  const temporary = [path.join(tmpdir(), 'millrace-0'), '/tmp/millrace-0']
  return ephemeral ? temporary : ['/var/lib/millrace', ...temporary]
}

function findUsableFolder(account: Account | undefined, bases: readonly string[]): string {
  const found = bases.find((base) => claimFolder(base) && (!account || letEnter(account, base)))
  if (!found) throw new StartError(`The user ${account?.uid} can enter none of ${bases.join(', ')}`)
  return realpathSync(found)
}

/**
 * Creates `folder`, which all users may enter but only this process's user may write to. Returns false if the folder
 * belongs to another user or can't be created.
 */
function claimFolder(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o755 })
    const { uid, mode } = lstatSync(folder)
    if (!lstatSync(folder).isDirectory() || uid !== process.getuid?.()) return false
    if ((mode & 0o777) !== 0o755) chmodSync(folder, 0o755)
    return true
  } catch {
    return false
  }
}

// Maximum length of the socket folder's path. A socket address holds 104 bytes on macOS and 108 on Linux, of which the
// file name `.s.PGSQL.65535` takes 16.
const MAX_SOCKET_FOLDER_LENGTH = 87

/**
 * Creates the folder for the sockets, which only the server's user and root may enter. The folder is in `home`, or in
 * the temporary directory if that path is too long for a socket. Removes sockets of a crashed server.
 */
export function prepareSockets(home: string, account: Account | undefined): string {
  const folder = chooseSocketFolder(home)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const owner = account?.uid ?? process.getuid?.()
  const { uid, gid } = lstatSync(folder)
  const ours = uid === owner || uid === process.getuid?.()
  if (!lstatSync(folder).isDirectory() || !ours)
    throw new StartError(`${folder} belongs to another user (${uid}); remove it`)
  if (account && (uid !== account.uid || gid !== account.gid)) chownSync(folder, account.uid, account.gid)
  chmodSync(folder, 0o700)
  for (const name of readdirSync(folder)) {
    if (name.startsWith('.s.PGSQL.')) rmSync(path.join(folder, name), { force: true })
  }
  return folder
}

function chooseSocketFolder(home: string): string {
  const name = `millrace-${process.getuid?.()}-${computeFingerprint(home)}`
  const folders = [path.join(home, 'socket'), path.join(tmpdir(), name), path.join('/tmp', name)]
  const short = folders.find((folder) => Buffer.byteLength(folder) <= MAX_SOCKET_FOLDER_LENGTH)
  if (!short) throw new StartError(`No folder has a path short enough for a socket: ${folders.join(', ')}`)
  return short
}

function computeFingerprint(file: string): string {
  return createHash('sha256').update(file).digest('hex').slice(0, 12)
}
