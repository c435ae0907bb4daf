import type { Format } from './chunks.ts'

const EXTENSIONS: Readonly<Record<Format, string>> = {
  markdown: 'md markdown mdx',
  html: 'html htm xhtml',
  pdf: 'pdf',
  text: 'txt text rst adoc asciidoc org tex log csv tsv json jsonl yaml yml toml ini cfg conf xml srt vtt',
  code: `ts tsx mts cts js jsx mjs cjs py pyi rb go rs java kt kts scala swift c h cc cpp cxx hh hpp cs fs php pl pm lua r jl ex exs
    erl hrl hs clj cljs dart sh bash zsh fish ps1 sql graphql proto vue svelte css scss less zig nim ml mli groovy gradle m mm vb`,
}

const formats = new Map(
  Object.entries(EXTENSIONS).flatMap(([format, list]) =>
    list.split(/\s+/).map((extension) => [extension, format as Format] as const),
  ),
)

/** Extensions to index if a request names none. */
export const KNOWN_EXTENSIONS: ReadonlySet<string> = new Set(formats.keys())

/** Returns the format of files with an extension; unknown extensions are plain text. */
export function formatOf(extension: string): Format {
  return formats.get(extension) ?? 'text'
}

/** Returns a file's extension in lower case, without the dot; empty if there is none, as in `.env`. */
export function extensionOf(fileName: string): string {
  const dot = fileName.lastIndexOf('.')
  return dot <= 0 ? '' : fileName.slice(dot + 1).toLowerCase()
}
