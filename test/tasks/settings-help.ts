import assert from 'node:assert/strict'
import { parseSettings, SettingsError } from '../../tasks/platform/settings/settings.ts'

export const KEY = 'a secret of thirty-two characters'
export const PRODUCTION = {
  NODE_ENV: 'production',
  SECRET_KEY: KEY,
  DATABASE_URL: 'postgresql://u:p4ss@db/x',
}

/** Returns the problems of an invalid environment. */
export function findProblems(environment: Record<string, string | undefined>): readonly string[] {
  try {
    parseSettings(environment)
  } catch (error) {
    assert.ok(error instanceof SettingsError)
    return error.problems
  }
  return []
}

export const settingNamesOf = (lines: readonly string[]): string[] =>
  lines.map((line) => line.split(':')[0]!).sort()
