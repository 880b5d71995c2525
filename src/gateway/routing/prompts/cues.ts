/** Cues of code, mathematics and reasoning in a prompt. Two points are enough for a capability. Each cue counts once, even if it occurs more often. */

/**
 * The name for the header, the points, and the pattern. Each pattern takes time linear in the length of the text. It nests no repetitions, and every
 * repetition before a required part has a bound.
 */
type Pattern = readonly [name: string, points: number, pattern: RegExp]

const worded = (points: number, list: string): readonly (readonly [string, number])[] => list.split(/\s+/).map(word => [word, points] as const)

/** Patterns that are matched against the text as it is written. */
export const codePatterns: readonly Pattern[] = [
  ['code_fence', 3, /```|~~~/],
  [
    'stack_trace',
    3,
    /Traceback \(most recent call last\)|^[ \t]{0,40}at [\w$.<>]{1,120} ?\([^)\n]{1,200}:\d+|\b\w{1,60}(?:Error|Exception): |Exception in thread|panic: |error\[E\d{4}\]|[Ss]egmentation fault|core dumped/m,
  ],
  [
    'declaration',
    3,
    /\b(?:def|fn|func) \w{1,60} ?\(|\bfunction\b ?\w{0,60} ?\(|\b(?:const|let|var) \w{1,60} ?=|\bpublic (?:static|class|void)\b|#include ?<|^\s{0,20}import \w[\w.]{0,60}(?: as \w{1,40})?$|\bimport .{1,80} from ['"]|\bclass \w{1,60}\s?[{(:]/m,
  ],
  ['sql', 3, /\bSELECT\b.{1,200}\bFROM\b|\bINSERT INTO\b|\bCREATE TABLE\b|\bALTER TABLE\b/s],
  [
    'syntax',
    2,
    /\b(?:for|if|while|switch) ?\([^)\n]{1,120}\) ?\{|\bawait \w{1,60}[.(]|=>|\);\s*$|\{\s*\n|&&|\|\||!==|===|<\/?(?:div|span|script|html|body|table)\b|\w\[\d\]|\w\.\w{1,40}\(\)|std::|::\w{1,40}\(/m,
  ],
  [
    'file_name',
    2,
    /\b[\w-]{1,60}\.(?:py|tsx?|jsx?|mjs|rs|go|java|kt|cpp|cc|hpp|cs|rb|php|sql|sh|ya?ml|toml|ipynb|vue|swift|scala|gradle|tf|css|lock)\b|\b(?:Dockerfile|Makefile|package\.json|tsconfig\.json|requirements\.txt|pom\.xml)\b/,
  ],
  [
    'command',
    2,
    /\bgit (?:reset|stash|diff|log|status|branch|cherry-pick|fetch|init|revert|bisect|blame|tag|switch|restore|remote)\b|\b(?:npm|pip3?|yarn|pnpm|cargo|kubectl|docker|git|apt-get|brew) (?:i|install|run|build|get|commit|push|pull|rebase|merge|clone|apply|compose|add|checkout|test)\b|\bsudo \w/,
  ],
  ['identifier', 2, /\buse[A-Z]\w{2,40}\b|\b[a-z]{1,30}_[a-z_]{1,60}\(/],
  [
    'framework',
    2,
    /\b(?:React|Angular|Svelte|Flutter|Laravel|Express|Rails|Spring Boot) (?:component|hooks?|app|state|widget|router|service|controller|module|project)\b|\bin (?:React|Flutter|Angular|Laravel|Svelte)\b/,
  ],
  ['camel_case', 1, /\b[A-Z][a-z]{1,30}[A-Z][a-z]\w{0,30}\b/],
  [
    'code_task',
    2,
    /\b(?:write|implement|create|build|make|fix|debug|refactor|review|optimi[sz]e|generate|add|explain|test|likho|banao)\b[^.?!\n]{0,60}\b(?:function that|function to|script|method|unit tests?|regex|parser|rest api|api endpoint|endpoint|sql query|react component|code|class|algorithm|web ?scraper|crud|compiler|linked list|binary (?:search|tree)|middleware|program that)\b/i,
  ],
]

export const codeWords: ReadonlyMap<string, number> = new Map([
  ...worded(
    2,
    'javascript typescript c++ c# golang kotlin php postgresql postgres mysql sqlite mongodb redis django flask fastapi numpy pandas pytorch tensorflow regex regexp sql graphql webpack vite eslint nodejs node.js next.js react.js vue.js re-render kubernetes dockerfile leetcode bytecode stacktrace nullpointerexception typeerror segfault async/await pytest jest junit css html json yaml xml github gitlab codebase refactor refactoring recursion hashmap printf stdin stdout localhost websocket oauth middleware terraform ansible nginx',
  ),
  ...worded(
    1,
    'python java rust swift flutter one-liner ruby scala haskell bash git react angular svelte spring rails docker linux api apis endpoint function functions script scripts variable variables array arrays loop loops string strings integer boolean pointer compile compiler compiled debug debugging debugger bug bugs code coding program programming programmer exception exceptions runtime syntax library framework frontend backend database query queries thread threads mutex deadlock deploy commit repository repo merge branch algorithm parse parser class classes method methods interface async await callback promise module package dependency cli terminal server cache unit-test tests test',
  ),
])

/** Patterns that are matched against the text as it is written. */
export const mathPatterns: readonly Pattern[] = [
  ['latex', 3, /\\(?:frac|int|sum|sqrt|lim|begin\{|cdot|infty|partial|alpha|beta|theta|pi)\b|\$[^$\n]{1,80}[\^_\\=][^$\n]{0,80}\$/],
  ['symbols', 2, /[∫∑√∂∞≤≥≠∈∀∃∇⊂]/u],
  [
    'equation',
    3,
    /\b\d{0,6}[xyzn]\s?(?:\^\s?\d|²|³|\*\*\s?\d)|\b\d{1,6}[xyz]\s?[+\-=]\s?\d|\b[xyz]\s?[+\-*/]\s?[xyz\d]{1,6}\s?=|\b(?:sin|cos|tan|log|ln)\s?\(?[xyzθ\d]|\bf\(x\)|\bdy\/dx\b|\bd\/dx\b/,
  ],
  ['arithmetic', 2, /\d\s?[*×÷^]\s?\d|\d\s[+/]\s\d|\d\s-\s\d(?!\d*\s?(?:am|pm)\b)|\d\s?%\s?of\s?\d|\d!\s|\bmod \d/],
  // The look-ahead for two numbers is anchored. Without the anchor, the time would grow with the square of the length.
  [
    'word_problem',
    2,
    /^(?=[^\d]*\d[\d.,]*[^\d]+\d)[\s\S]*\b(?:how (?:many|far|fast|old|long will|long does|much does)|find (?:the|its|their|his|her)|what (?:is|was|will be) (?:the|his|her|its|their) (?:total|average|speed|area|volume|probability|sum|profit|distance|perimeter|ratio|price|age|cost))\b/i,
  ],
  [
    'chance',
    2,
    /\b(?:coins?|dice|die|cards?|balls?|marbles?)\b[^.?!]{0,80}\b(?:probability|odds|chances?)\b|\bprobability\b[^.?!]{0,80}\b(?:coins?|dice|die|cards?|balls?|marbles?)\b/i,
  ],
  [
    'conversion',
    2,
    /\bconvert\b[^.?!\n]{0,30}\d[^.?!\n]{0,30}\b(?:fraction|decimal|percent|percentage|binary|hexadecimal|radians|degrees)\b|\bconvert\b \d+\.\d+ .{0,20}\bfraction\b/i,
  ],
  [
    'math_task',
    2,
    /\b(?:solve|prove|evaluate|simplify|factori[sz]e|differentiate|integrate|compute|calculate)\b[^.?!\n]{0,40}(?:\d|\b(?:equation|integral|derivative|limit|matrix|determinant|theorem|inequality|polynomial|sum|area|volume|probability|root|that)\b)/i,
  ],
]

export const mathWords: ReadonlyMap<string, number> = new Map([
  ...worded(
    2,
    'equation equations integral integrals derivative derivatives eigenvalue eigenvalues eigenvector polynomial polynomials quadratic logarithm calculus trigonometry factorial theorem lemma hypotenuse permutations combinatorics bayesian determinant gcd lcm modulo algebra fibonacci geometric-series arithmetic-progression',
  ),
  ...worded(
    1,
    'matrix matrices polygon diagonals diagonal hexagon pentagon parallelogram vector probability prime primes triangle circle radius perimeter geometry variance deviation median mean sum product fraction fractions decimal ratio percent percentage proof prove solve integer integers divisible divisor square root exponent inequality angle degrees coordinates graph slope tangent convergence converge series sequence infinite',
  ),
])

/** Patterns that are matched against the text in lower case. */
export const reasoningPatterns: readonly Pattern[] = [
  [
    'steps',
    2,
    /\bstep[- ]by[- ]step\b|\bthink (?:it |this )?(?:through|carefully|hard)\b|\breason(?:ing)? (?:about|through|carefully)\b|\bshow your (?:reasoning|work|thinking)\b|\bwork through\b/,
  ],
  [
    'comparison',
    2,
    /\bpros and cons\b|\btrade-?offs?\b|\bcompare\b.{1,120}\b(?:and|with|to|versus|vs)\b|\badvantages and disadvantages\b|\bstrengths and weaknesses\b|\bwhich (?:one )?(?:is better|should (?:i|we))\b|\bweigh\b.{1,60}\bagainst\b/s,
  ],
  [
    'cause',
    2,
    /\broot cause\b|\bwhat would happen if\b|\bwhat are the (?:implications|consequences)\b|\bexplain why\b|\bwhy (?:did|does|do|would|might|is it that)\b.{30,}|\bunder what conditions\b|\bcounterfactual\b/s,
  ],
  [
    'puzzle',
    2,
    /\b(?:logic )?puzzle\b|\briddle\b|\bknights? and knaves?\b|\bwho (?:is|was) (?:lying|telling the truth)\b|\bif all \w{1,40} are\b|\bdeduce\b|\bsitting (?:next|to the left|to the right)\b|\btruth-teller\b|\bmust be true\b/,
  ],
  [
    'plan',
    2,
    /\b(?:plan|design|devise|develop|draft|create|come up with|propose)\b.{0,60}\b(?:strategy|roadmap|architecture|experiment|framework|plan|policy|curriculum|migration)\b|\bfirst\b.{1,120}\bthen\b.{1,120}\b(?:finally|last)\b/s,
  ],
  [
    'critique',
    2,
    /\b(?:critique|critically|evaluate the|assess (?:the|whether)|argue (?:for|against|that|both)|analy[sz]e (?:the|this|how|why|whether)|steel-?man|refute|debate)\b/,
  ],
]

export const reasoningWords: ReadonlyMap<string, number> = new Map(
  worded(
    1,
    'hypothesis hypotheses inference infer implications consequences assumptions assumption justify rationale dilemma paradox contradiction premises premise conclusion fallacy optimise optimize prioritise prioritize constraints scenario scenarios ethical tradeoff multi-step strategy strategic analyse analyze analysis evaluate therefore logically',
  ),
)

/** Words that ask for depth in any subject. */
export const hardWords: ReadonlySet<string> = new Set(
  'rigorous rigorously comprehensive comprehensively thorough thoroughly in-depth prove proof architecture distributed concurrency optimise optimize production-grade end-to-end formally theorem derive derivation exhaustive exhaustively trade-offs tradeoffs multi-step strategy edge-cases edge critically scalable fault-tolerant'.split(
    ' ',
  ),
)
