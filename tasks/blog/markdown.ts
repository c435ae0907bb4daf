import { writeYaml } from './yaml.ts'

/** Front matter of an exported post. */
export interface PostFrontMatter {
  readonly title: string
  readonly slug: string
  readonly [key: string]: unknown
}

/** Formats a post as Markdown with front matter; importing the file yields the same post. */
export function toMarkdown({ content, ...matter }: PostFrontMatter & { readonly content: string }): string {
  return `---\n${writeYaml(matter)}---\n${content}`
}
