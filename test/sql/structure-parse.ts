/** Parses this repository's code style: a file's imports, and its code without comments and the contents of strings. */

export interface Import {
  /** Module specifier; '' if it is computed. */
  readonly target: string
  /** True for type-only imports, which load nothing. */
  readonly erased: boolean
}

const TOKENS =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|(?<=[=(,:?&|!{;[\n]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/[a-z]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g

/** Code without comments, regular expressions and the insides of texts. */
export function stripCommentsAndStrings(text: string): string {
  return text.replace(TOKENS, (token) => (/^['"`]/.test(token) ? `${token[0]}${token[0]}` : ' '))
}

/** Indents continuation lines of comments and strings, so that they do not look like top-level code. */
export const indentTokens = (text: string): string =>
  text.replace(TOKENS, (token) => token.replaceAll('\n', '\n '))

const STATIC_IMPORT = /^\s*(?:import|export)\b(\s+type\b)?[^'"`;=()]*?\bfrom\s*(['"])([^'"]+)\2/gm
const SIDE_EFFECT_IMPORT = /^\s*import\s*(['"])([^'"]+)\1/gm
const IMPORT_CALL =
  /\b(?:import|import\.meta\.resolve|createRequire\([^()]*(?:\([^()]*\))?[^()]*\)(?:\.resolve)?|require)\(\s*(?:(['"])([^'"]+)\1|[^)])/g

/** Finds all imports of a file: static and dynamic ones, re-exports, and modules resolved to a path. */
export function findImports(text: string): Import[] {
  const code = text.replace(TOKENS, (token) => (/^\/[*/]/.test(token) ? ' ' : token))
  return [
    ...[...code.matchAll(STATIC_IMPORT)].map((match) => ({
      target: match[3]!,
      erased: match[1] !== undefined,
    })),
    ...[...code.matchAll(SIDE_EFFECT_IMPORT)].map((match) => ({ target: match[2]!, erased: false })),
    ...[...code.matchAll(IMPORT_CALL)].map((match) => ({ target: match[2] ?? '', erased: false })),
  ]
}
