import { execFileSync } from 'node:child_process'
import { pathToFileURL } from 'node:url'

/** `npm run subjects`: checks the subjects of all commits since the newest version in CHANGELOG.md. */

const ROOMS = 'edge|sql|tasks|workers|test|deploy|docs|build'
const SUBJECT = new RegExp(`^(${ROOMS}): ([A-Z][a-z]+)( .+)$`)
const MAX_LENGTH = 60
/** Words that are not imperative verbs: question words, articles, pronouns, participles. */
const NON_VERBS =
  /^(What|Whether|Who|How|That|This|The|An?|All|Each|No|It|Its|[A-Z][a-z]*[^e]ed|[A-Z][a-z]{2,}ing)$/

/** Returns the reason to reject a commit subject; null if the subject is valid. */
export function findSubjectFault(subject: string): string | null {
  if (subject.length > MAX_LENGTH) return `${subject.length} characters, at most ${MAX_LENGTH}`
  const verb = SUBJECT.exec(subject)?.[2]
  if (verb === undefined) return `write "ROOM: Verb object" with one of the rooms ${ROOMS}`
  return NON_VERBS.test(verb) ? `"${verb}" is no imperative` : null
}

/**
 * Reads the subjects of commits after the one that added the newest version heading. Returns an empty array without a
 * git history.
 */
function readSubjectsSinceVersion(): string[] {
  const git = (...options: string[]): string =>
    execFileSync('git', options, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    const version = git('log', '-1', '--format=%H', '-G^## [0-9]', '--', 'CHANGELOG.md')
    return git('log', '--no-merges', '--format=%s', `${version}..HEAD`).split('\n').filter(Boolean)
  } catch {
    console.log('No git history: commit subjects are not checked.')
    return []
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const faults = readSubjectsSinceVersion().flatMap((subject) => {
    const fault = findSubjectFault(subject)
    return fault === null ? [] : [`${subject}: ${fault}`]
  })
  for (const fault of faults) console.error(fault)
  process.exitCode = faults.length === 0 ? 0 : 1
}
