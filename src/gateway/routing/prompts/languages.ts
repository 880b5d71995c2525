/** Recognises languages by their script, and Indian languages in Latin letters by words that English does not have. */

/** A language tag as in the catalog. `other` means any other script that is not Latin. */
export type Language = 'hi' | 'bn' | 'ta' | 'te' | 'kn' | 'ml' | 'gu' | 'pa' | 'or' | 'ur' | 'mr' | 'other'

/** First and last code point of a Unicode block, with its most common language. Greek is absent because formulas use it. */
const blocks: readonly (readonly [first: number, last: number, language: Language])[] = [
  [0x0900, 0x097f, 'hi'],
  [0x0980, 0x09ff, 'bn'],
  [0x0a00, 0x0a7f, 'pa'],
  [0x0a80, 0x0aff, 'gu'],
  [0x0b00, 0x0b7f, 'or'],
  [0x0b80, 0x0bff, 'ta'],
  [0x0c00, 0x0c7f, 'te'],
  [0x0c80, 0x0cff, 'kn'],
  [0x0d00, 0x0d7f, 'ml'],
  [0x0600, 0x06ff, 'ur'],
  [0x0750, 0x077f, 'ur'],
  [0xfb50, 0xfdff, 'ur'],
  [0xa8e0, 0xa8ff, 'hi'],
  [0x0400, 0x052f, 'other'],
  [0x0590, 0x05ff, 'other'],
  [0x0d80, 0x10ff, 'other'],
  [0x1780, 0x17ff, 'other'],
  [0x1c50, 0x1c7f, 'other'],
  [0x3040, 0x30ff, 'other'],
  [0x3400, 0x9fff, 'other'],
  [0xabc0, 0xabff, 'other'],
  [0xac00, 0xd7af, 'other'],
]

/** Minimum number and minimum share of letters in another script that make a prompt multilingual. A single foreign character may be decoration. */
const lettersMin = 3
const shareMin = 0.05

/** Returns the language of the most frequent script, if that script is frequent enough. Returns null for Latin text. */
export function scriptLanguage(text: string): Language | null {
  let latin = 0
  let foreign = 0
  const counts = new Map<Language, number>()
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x0400) {
      if ((unit | 32) >= 97 && (unit | 32) <= 122) latin++
      continue
    }
    const block = blocks.find(([first, last]) => unit >= first && unit <= last)
    if (block === undefined) continue
    foreign++
    counts.set(block[2], (counts.get(block[2]) ?? 0) + 1)
  }
  // Two Chinese or Japanese characters can be a whole word, so two letters of `other` are enough.
  const least = (counts.get('other') ?? 0) === foreign ? 2 : lettersMin
  if (foreign < least || foreign / (foreign + latin) < shareMin) return null
  const most = [...counts].reduce((before, entry) => (entry[1] > before[1] ? entry : before))[0]
  if (most === 'ur') return urduLetters.test(text) ? 'ur' : 'other'
  return most === 'hi' && isMarathi(text) ? 'mr' : most
}

/** Letters of Urdu that Arabic and Persian do not have. */
const urduLetters = /[\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2]/

/** Common Marathi words and endings that Hindi does not have, and Hindi words that Marathi does not have. Both languages use Devanagari. */
const marathiWords = new Set(
  'आहे आहेत आहेस आहात आहोत मला तुला त्याला तिला तुम्ही आम्ही आपण आणि माझा माझी माझे माझ्या तुझा तुझी तुमचा तुमची कसा कशी कसे काय नाही नाहीत नको मध्ये पाहिजे सांगा लिहा करा द्या कोणता कोणती कोणत्या कोणते कुठे केव्हा साठी शकता शकतो शकते होता होती झाला झाली झाले आहेत ते हे या एका'.split(
    ' ',
  ),
)
const hindiWords = new Set(
  'है हैं हो हूँ हूं में और का की के को से ने नहीं क्या मुझे मेरा मेरी मेरे आप आपका आपकी तुम तुम्हें हम हमें था थी थे लिए कैसे कैसा कैसी बताओ बताइए बताएं लिखो लिखें कहाँ कहां कब कौन यह वह ये वे भी पर तो कर करें करो दो'.split(
    ' ',
  ),
)
const marathiEnding = /(?:साठी|च्या|ांना|ळा|ळी|ळे|ायचे|ायचा|ायची|हून)$/

function isMarathi(text: string): boolean {
  let score = 0
  for (const word of (text.match(/[\u0900-\u0963\u0970-\u097f]+/g) ?? []).slice(0, wordsMax)) {
    if (marathiWords.has(word) || marathiEnding.test(word)) score++
    else if (hindiWords.has(word)) score--
  }
  return score > 0
}

/**
 * Everyday words in Latin letters, as people type them. A match needs two different words of one language. The name of a person or dish in an English
 * sentence is therefore not a match.
 */
const romanised: readonly (readonly [Language, string])[] = [
  [
    'hi',
    'hai hain kya kyu kyun kyon kaise kaisa kaisi nahi nahin mujhe mujhko tumhe tumhara tumhari mera meri mere aap aapka aapki aapko hamara humara hamein humko unka uska uski iska iski karo karna karne karke karta karti karte kiya kiye batao bataiye bata dijiye kijiye chahiye chahta chahti raha rahi rahe lekin kyunki agar magar phir abhi kabhi kuch sab bahut bohot bohat accha acha achha theek thik bhai yaar matlab samjhao samajh samjha likho likhna likh wala wali wale kahan kahaan kaun kaunsa kitna kitne kitni kab jab tak liye saath gaya gayi hoga hogi honge tha thi hua hui aaj kal zaroor zindagi paisa paise ghar dost pyaar dil naam kaam shukriya dhanyavaad namaste haal sakta sakte sakti mein mai hoon hun dena lena jaldi pehle baad taki isliye waise bhi ka ke ki ko se ye yeh woh toh kare karen karein kam kahani sunao sunaao',
  ],
  [
    'ta',
    'enna yenna epdi eppadi eppo eppothu enga yaaru naan neenga unga ungal enakku ungalukku irukku iruku irukken irukkinga illai illa venum vendum vendam pannu panna pannunga pannanum panren panra panna seri romba konjam sollu sollunga solla solluga theriyum theriyala puriyala nalla nanri nandri vanakkam machan thambi anna akka ippo inga anga ithu athu idhu adhu poitu varen vaanga saptiya saapadu evlo evvalavu ethana kudunga mudiyum mudiyuma aachu',
  ],
  [
    'te',
    'ela unnaru unnav unnavu emi enti endhi cheppu cheppandi ledu undi nenu meeru naaku naku neeku meeku kavali chala enduku ekkada eppudu bagunnara baagunnara bagunna chestunnaru chestunna cheyandi cheyali avunu kadu kaadu telugu telusu teliyadu vellali randi raandi manchi dhanyavadalu namaskaram ippudu repu nuvvu mana memu evaru entha istam chesi gurinchi',
  ],
  [
    'kn',
    'hege hegide hegiddira hegiddeera nanu naanu neevu nimma nimage nanna nanage nange beku beda illa yaake yake yaava yelli elli yaavaga maadi maadu madi madbeku gottilla gottu hogi helu heli tumba swalpa chennagide dhanyavada namaskara ivattu nale olle oota sigutte sigutta nalli alli illi hesaru ooru duddu madli hogbeku barthini gothu enu yenu ide idu adu bagge kannada barute bartini',
  ],
  [
    'ml',
    'enthanu enthaanu entha enthu enikku enik ningal njan njaan ente ninte evide eppol engane enganeyanu undo undu venam veno sukhamano sukham cheyyan cheyyam cheyyuka parayu parayamo alle aanu aano illa ariyam ariyilla nannayi nandi namaskaram malayalam malayalathil ippol innu nale mazha undakumo undakum ennu joli ethra eppozha kazhicho poyi vannu kurachu valare ezhuthu',
  ],
  [
    'bn',
    'ami tumi apni kemon achho acho achen bhalo kothay keno korbo korte koro korun korbe amar tomar apnar amake tomake hobe hoyeche ektu bolo bolun jonno kobe kokhon ache nei nai parbo paro parbe bangla banglay likhe dhonnobad shubho aaj ki kichu onek ekta tahole kintu jodi ebong',
  ],
  [
    'mr',
    'kasa kashi kase aahe aahes aahat ahe mala tula tumhi amhi aamhi kay kaay nahi pahije kuthe kadhi sanga saang karaycha karayche karave majha majhi tujha tujhi marathi marathit khup changla chan dhanyavad pan ani aani mhanje kasha kiti kon kona madhe sathi',
  ],
  [
    'gu',
    'kem chho chhe chhu che mane tamne tame tamaru shu kevi kevu rite joiye maru mari nathi kyare kya kyan karvu karo gujarati gujaratima saru majama aabhar pan ane hu badha ketla kone hato hati varta kaho',
  ],
  [
    'pa',
    'kiven kiwe kidda tusi tuhada tuhadi tuhanu mainu menu sanu kithe kithon kado hun sadda sada changa dasso dass karna karda kardi hega punjabi punjabi vich nahi haal oye veere paaji chahida hunda hundi assi eh kinna kinne changi jihi sunao',
  ],
  [
    'or',
    'kemiti kemti achha achhi achhanti tume apana apananka mote mora kouthi keunthi kana kahin kahinki karibi karantu bhala odia odiare dhanyabad nahin nuhen heba hela kebe kete',
  ],
]

const byWord: ReadonlyMap<string, readonly Language[]> = (() => {
  const made = new Map<string, Language[]>()
  for (const [language, list] of romanised) for (const word of new Set(list.split(' '))) made.set(word, [...(made.get(word) ?? []), language])
  return made
})()

/** Words in the lists that are also English words or common names. Two of these words can replace one of the two required words, but not both. */
const shared: ReadonlySet<string> = new Set(
  'ka ke ko se ye kam alli illi anna ide idu adu kana hun che pan mane menu mora mote hu eh sada chan mari maru saru ki nei nai keno ache anga inga enga seri kay kem kone hati tha thi dil sab jab tak tame mai mere nale heli undo repu ela bata entha naan veno dass bolo chala randi kab kon ani moro ente enna malayalam telugu kannada gujarati punjabi marathi odia bangla namaste namaskaram namaskara'.split(
    ' ',
  ),
)
/** The minimum share of all words that must match. */
const shareOfWordsMin = 0.15
/** Maximum number of words that are read. */
const wordsMax = 400

/** Returns the Indian language of a text in Latin letters. Returns null for English and for other languages. `lower` must be in lower case. */
export function romanisedLanguage(lower: string): Language | null {
  const words = (lower.match(/[a-z]+/g) ?? []).slice(0, wordsMax)
  const hits = new Map<Language, { readonly own: Set<string>; count: number }>()
  for (const word of words) {
    for (const language of byWord.get(word) ?? []) {
      const hit = hits.get(language) ?? { own: new Set<string>(), count: 0 }
      hits.set(language, hit)
      hit.count++
      hit.own.add(word)
    }
  }
  let best: Language | null = null
  let most = 0
  for (const [language, { own, count }] of hits) {
    const clear = [...own].filter(word => !shared.has(word)).length
    const isEnough = clear >= 2 || (clear === 1 && own.size >= 3)
    if (isEnough && count / words.length >= shareOfWordsMin && count > most) {
      best = language
      most = count
    }
  }
  return best
}
