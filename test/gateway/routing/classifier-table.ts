/**
 * Prompts as people send them to a gateway in India, each with the capability (and language) that a person would choose. The classifier must match
 * every row.
 */

const rows = (text: string): readonly (readonly [expected: string, prompt: string])[] =>
  text
    .trim()
    .split('\n')
    .map(line => {
      const at = line.indexOf('|')
      return [
        line.slice(0, at).trim(),
        line
          .slice(at + 1)
          .trim()
          .replaceAll('⏎', '\n'),
      ] as const
    })

export const table = rows(`
code | Write a Python script that reads a CSV and prints the average of the third column
code | My Express app returns 404 for every route. Here is the code:⏎app.get('/users', (req, res) => res.json(users))
code | Explain what a foreign key is in PostgreSQL with an example CREATE TABLE statement
code | How do I cancel a fetch request in React when the component unmounts?
code | Convert this function from callbacks to async/await:⏎function load(cb) { fs.readFile('a.txt', cb) }
code | why is my docker container exiting with code 137
code | Give me a regex that matches Indian mobile numbers
code | Write a SQL query for the second highest salary from the employees table
code | ModuleNotFoundError: No module named 'pandas' even though I installed it
code | Review this diff⏎-  if (a == b)⏎+  if (a === b) {
code | Write a Java program to check whether an Aadhaar number is valid
code | How can I speed up a pandas groupby on 10 million rows?
code | What does git reset --hard HEAD~1 do?
code | implement quicksort in C++ and explain the time complexity
code | Please add error handling to src/server.ts
code | Write pytest tests for a function that parses UPI ids
code | Kubernetes pod stuck in Pending, kubectl describe says insufficient memory
code | def fib(n): return n if n < 2 else fib(n-1) + fib(n-2)⏎How can I memoize this?
code | Python mein list ko reverse kaise kare, code likho
code | ye javascript function kaam kyun nahi kar raha: const add = (a, b) => { a + b }
code | यह कोड क्यों नहीं चल रहा?⏎\`\`\`python⏎for i in range(10)⏎    print(i)⏎\`\`\`
code | # संख्या जोड़ने का फ़ंक्शन⏎def add(a, b):⏎    # दोनों का योग लौटाओ⏎    return a + b⏎⏎Add type hints
code | // यह लूप हर उपयोगकर्ता को ईमेल भेजता है⏎for (const user of users) { await send(user.email) }⏎Make it parallel.
code | இந்த python code ஏன் error தருது?⏎\`\`\`⏎print("hi"⏎\`\`\`
code | Write an nginx config that proxies /api to localhost:8080
code | How to deploy a Django app on an EC2 instance with gunicorn?
code | Flutter: RenderFlex overflowed by 32 pixels on the right
code | Exception in thread "main" java.lang.NullPointerException at Main.main(Main.java:5)
code | Write a bash one-liner that finds the ten largest files
code | What is the difference between useEffect and useLayoutEffect?
math | If 5x + 3 = 28, what is x?
math | A train 120 m long crosses a pole in 6 seconds. What is its speed in km/h?
math | Find the area under y = x^2 from 0 to 3
math | Simple interest on Rs 5000 at 8% per annum for 3 years, find the total amount
math | What is the probability of getting at least one head in three coin tosses?
math | Solve the quadratic equation 2x^2 - 7x + 3 = 0
math | Prove that the sum of two odd integers is even
math | Calculate 18% GST on 12,500
math | Differentiate sin(x) * e^x
math | What is 37 * 43?
math | The ratio of boys to girls in a class is 3:2 and there are 40 students. How many girls are there?
math | Find the determinant of [[1, 2], [3, 4]]
math | Evaluate $\\int_0^\\infty e^{-x^2} dx$
math | How many diagonals does a polygon with 12 sides have?
math | Ramesh buys a cycle for ₹1200 and sells it for ₹1500. What is his profit percentage?
math | Two pipes fill a tank in 10 and 15 hours. How long will both together take?
math | lim x->0 (1 - cos x)/x^2
math | What is the remainder when 2^100 is divided by 7?
math | convert 0.375 to a fraction
math | समीकरण हल करो: 2x + 5 = 15
math | x² - 9 = 0 का हल क्या है?
multilingual hi | मुझे जीएसटी रिटर्न भरने का तरीका बताइए
multilingual hi | दिल्ली से मुंबई जाने में कितना समय लगता है?
multilingual hi | मेरी बेटी के जन्मदिन के लिए एक छोटी कविता लिखो
multilingual hi | कृपया इस पत्र को औपचारिक भाषा में लिखें
multilingual hi | किसान क्रेडिट कार्ड के लिए कौन से दस्तावेज़ चाहिए?
multilingual hi | Please write a reply to this customer: "मेरा ऑर्डर अभी तक नहीं आया है, कृपया बताएं कब आएगा"
multilingual ta | சென்னையில் இன்று மழை பெய்யுமா?
multilingual ta | எனக்கு ஒரு நல்ல சாம்பார் செய்முறை சொல்லுங்கள்
multilingual ta | இந்த கடிதத்தை ஆங்கிலத்தில் மொழிபெயர்க்கவும்
multilingual ta | பொங்கல் வாழ்த்து செய்தி எழுதுங்கள்
multilingual te | నాకు ఒక చిన్న కథ చెప్పండి
multilingual te | ఆంధ్రప్రదేశ్ రాజధాని ఏది?
multilingual te | ఈ వాక్యాన్ని హిందీలోకి అనువదించండి
multilingual te | రేపు విజయవాడలో వాతావరణం ఎలా ఉంటుంది?
multilingual bn | আমাকে একটি ছুটির দরখাস্ত লিখে দাও
multilingual bn | কলকাতার দুর্গাপূজা সম্পর্কে বলুন
multilingual bn | এই বাক্যটি ইংরেজিতে অনুবাদ করো
multilingual bn | আজ রাতে কী রান্না করব?
multilingual mr | मला पुण्याहून नाशिकला कसे जायचे ते सांगा
multilingual mr | माझ्या मुलीच्या वाढदिवसासाठी एक छान कविता लिहा
multilingual mr | शेतकऱ्यांसाठी कोणत्या योजना आहेत?
multilingual mr | तुम्ही मला मदत करू शकता का? मला एक पत्र लिहायचे आहे
multilingual gu | મને અમદાવાદ વિશે માહિતી આપો
multilingual gu | દિવાળી માટે શુભેચ્છા સંદેશ લખો
multilingual gu | આ વાક્યનો અંગ્રેજીમાં અનુવાદ કરો
multilingual kn | ಬೆಂಗಳೂರಿನ ಇತಿಹಾಸದ ಬಗ್ಗೆ ಹೇಳಿ
multilingual kn | ನನಗೆ ಒಂದು ಕಥೆ ಬರೆಯಿರಿ
multilingual kn | ಇದನ್ನು ಇಂಗ್ಲಿಷ್‌ಗೆ ಅನುವಾದಿಸಿ
multilingual ml | ഓണത്തെക്കുറിച്ച് ഒരു ലേഖനം എഴുതുക
multilingual ml | എനിക്ക് ഒരു ജോലി അപേക്ഷ എഴുതി തരൂ
multilingual ml | ഇന്ന് കൊച്ചിയിൽ മഴ പെയ്യുമോ?
multilingual pa | ਮੈਨੂੰ ਪੰਜਾਬ ਦੇ ਤਿਉਹਾਰਾਂ ਬਾਰੇ ਦੱਸੋ
multilingual pa | ਇੱਕ ਛੋਟੀ ਕਹਾਣੀ ਲਿਖੋ
multilingual or | ମୋତେ ଜଗନ୍ନାଥ ମନ୍ଦିର ବିଷୟରେ କୁହନ୍ତୁ
multilingual or | ଏକ ଛୋଟ ଗଳ୍ପ ଲେଖ
multilingual ur | مجھے بریانی بنانے کا طریقہ بتائیں
multilingual ur | ایک چھوٹی سی نظم لکھیں
multilingual ur | کل لاہور کا موسم کیسا ہوگا؟
multilingual other | 请帮我写一封感谢信
multilingual other | اكتب لي رسالة شكر إلى معلمي
multilingual other | Напиши поздравление с днём рождения
multilingual hi | mujhe ek accha sa resume banana hai, kaise banau
multilingual hi | bhai mera recharge nahi hua paise kat gaye kya karu
multilingual hi | diwali ke liye ghar saaf karne ke tips do
multilingual hi | kal meri exam hai aur mujhe kuch yaad nahi ho raha
multilingual hi | aap mujhe train ka time bata sakte ho kya
multilingual hi | yaar ye movie kaisi hai, dekhni chahiye ya nahi
multilingual hi | mere papa ko sugar hai unko kya khana chahiye
multilingual hi | loan ki EMI kam kaise kare
multilingual hi | Hi team, mera laptop start nahi ho raha hai, please help karo
multilingual ta | enakku oru nalla kadhai sollunga
multilingual ta | chennai la veedu vaadagai evlo irukkum nu sollu
multilingual ta | naalaikku exam irukku, epdi padikanum
multilingual ta | inga pakkathula nalla hotel enga irukku
multilingual te | naaku job kavali, em cheyali cheppandi
multilingual te | meeru ela unnaru, naaku konchem help chestara
multilingual te | ee cinema ela undi cheppu
multilingual te | hyderabad lo manchi biryani ekkada dorukuthundi
multilingual kn | nanage swalpa duddu beku yenu madli
multilingual kn | bengaluru nalli olle oota elli sigutte heli
multilingual ml | enikku oru joli venam entha cheyyendathu
multilingual ml | nale mazha undakumo ennu parayamo
multilingual bn | amar matha betha korche, ki korbo bolo
multilingual bn | tumi ki amake ekta golpo bolte paro
multilingual mr | mala ek nokri pahije, kay karu sanga
multilingual mr | pune la kasa jaycha te sanga na
multilingual gu | mane ek saari varta kaho ne
multilingual gu | tame kem cho, mare ek kaam chhe
multilingual pa | mainu ek changi jihi kahani sunao
multilingual pa | tusi dasso main ki karan
multilingual or | mote gote bhala gapa kuha, tume kemiti achha
reasoning | Compare buying a flat and renting one in Bengaluru, with pros and cons
reasoning | Should our startup build or buy a CRM? Think it through step by step.
reasoning | If all roses are flowers and some flowers fade quickly, must some roses fade quickly? It must be true or not: explain why.
reasoning | What would happen if India stopped importing oil tomorrow?
reasoning | Analyze the trade-offs between strong consistency and availability for a wallet service
reasoning | A farmer must cross the river with a wolf, a goat and a cabbage. Solve the puzzle.
reasoning | Draft a three year strategy for a co-operative bank that wants to go digital
reasoning | Argue for and against lowering the voting age to 16
reasoning | Our sales fell 20% in June. What is the root cause likely to be, and how would you check each hypothesis?
reasoning | Critique this argument: crime fell because more ice cream was sold
reasoning | Which is better for a small clinic, paper records or a hosted system? Justify your recommendation.
reasoning | Why did the Mughal empire decline so quickly after Aurangzeb died in 1707?
reasoning | Evaluate the implications of a universal basic income for rural labour markets
reasoning | Three friends sit in a row; Asha is not next to Bina. Deduce who sits in the middle.
general | Write a leave application for two days
general | Who is the current governor of the RBI?
general | Tell me about Ramesh Kumar's shop in Chandni Chowk
general | Suggest a name for my bakery
general | Write a short bio for Priya Sharma, a yoga teacher in Pune
general | What is the best time to visit Ladakh?
general | Summarise the Ramayana in five sentences
general | How do I make masala dosa at home?
general | 9876543210
general | 42
general | 2024-01-15
general | Invoice 10023 dated 12/03/2024 for Rs 45,000
general | My PNR is 4512345678, is my train late?
general | My flight AI 202 was delayed by 5 hours. Write a complaint email.
general | What does the Hindi word jugaad mean?
general | Is naan made with maida?
general | Give me a caption for a photo of the Gateway of India
general | Translate "good morning" to Hindi
general | Namaste, can you help me plan a trip to Kerala for 5 days?
general | Anna and Mala are going to the beach. Write a story about them.
general | hi
general | thanks!
general | ok
general | Who wrote the national anthem of India?
general | Best street food in Indore
general | What is the plot of the film 3 Idiots?
general | Make this email shorter and more polite
general | Tell me about Python snakes in the Western Ghats
general | Is Java an island?
general | How do I renew my passport online?
general | Write a product description for a steel water bottle, 750 ml, ₹499
general | Ek Tha Tiger is a film; who directed it?
general | My mother's name is Sita and my father's name is Ram. Write a poem for them.
general | Where can I buy a good saree in Kanchipuram?
general | 😀😀😀
general | The Karan Johar movie, what is it called?
general | Please call me at 5 pm on 12 June
general | How do metals react with water to form a new component?
general | My butterflies flutter around the garden every morning
general | Who won the toss in the India Pakistan match?
general | What are the odds that it rains on my wedding day?
general | Is WhatsApp free to use in India?
general | Where is the nearest McDonald's in Pune?
general | Tell me about YouTube creators in India
general | I want to express my app idea to an investor
general | If (and only if) you like it, send me a photo
general | Ask Mr. Kar about the rent
general | Ke Huy Quan won an Oscar
general | Tell me a story about Ko Phi Phi island
general | The Alli river and the Illi valley
general | Summarise the news: ye olde pub closed
general | se la vie, what does it mean?
general | Please convert 100 USD to INR
general | Convert this photo to black and white
general | I have 3 cards in my wallet and one is expired
general | Book 2 tickets for 5 people
general | Meeting moved from 3 - 4 pm to 5 - 6 pm
general | My phone number is 98765 43210 and my address is 12/4 MG Road
general | Flight 6E-204 leaves at 10:45
general | Rate this from 1-10
general | The 2024-25 budget: tell me the highlights
general | Use Rahul's number, it is 555-1234
general | What is the class size in Delhi schools?
general | Is the Taj Mahal closed on Fridays?
general | How many states are there in India?
general | The function at my daughter's school starts at 6
general | What is the test match score?
general | I need to fix my car, what should I check?
general | Write a return gift idea list for a birthday party
general | import duty on gold in India
general | Select a good name from this list
general | My tailor needs fabric patterns and thread
general | The server at the restaurant was rude
general | I cannot let go of my anger
general | Write a review of my bug spray
general | What is a good package for a honeymoon in Kashmir?
general | Explain the Spring festival of Holi
general | Who is the head of the tree planting branch?
`)
